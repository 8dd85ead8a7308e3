"""The public checks on a student's own file, made again after each save, with everything kept loaded."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import watchfiles

from grader.domain.analyzed_program import Program
from grader.domain.evidence import Finding
from grader.files.file_names import modules_beside
from grader.students.homework import LocalAssignment
from grader.students.own_check import LocalCheck, checked_again, with_checks
from grader.students.own_machine import OwnWorkers, with_own_machine_limits

if TYPE_CHECKING:
    from grader.judge.examination import Checks

# runs the checks once; it calls the first function with the program, and the second with each finding
RunCheck = Callable[[Callable[[Program], None], Callable[[Finding], None]], LocalCheck]

SETTLED_MS = 20  # an editor's writes that follow each other faster are one save
LOOK_MS = 1000  # a save that the system does not report, as on some network drives, is seen after this


def check_on_every_save(
    path: Path, local: LocalAssignment, saves: Iterable[None], show: Callable[[RunCheck], None]
) -> None:
    """Make the public checks now, and again for each of the saves.

    Args:
        path: The homework.
        local: Its assignment.
        saves: Ends when nobody wants any more checks: see `saves_of`.
        show: Runs the checks by the function that it gets, and shows the result. The function raises a
            GraderError if the file cannot be read as it is now; that is shown, too.

    Raises:
        CourseError: The checks cannot be collected.
    """
    assignment = with_own_machine_limits(local.assignment)
    with OwnWorkers(assignment, path.parent) as workers:

        def check_again(checks: "Checks") -> None:
            def run_check(read: Callable[[Program], None], report: Callable[[Finding], None]) -> LocalCheck:
                return checked_again(checks, path, assignment, workers, read, report, part=local.part)

            show(run_check)
            workers.warm_up()
            for _ in saves:
                show(run_check)
                workers.warm_up()

        with_checks(local, assignment, check_again)


def saves_of(path: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield each time the content of the file, or of a module that it imports, has changed.

    It makes no difference whether an editor writes into the file or replaces it. A missing or empty file does
    not count as a save. The iteration ends soon after `stop` is set.
    """
    return _saves(path, _content(path), stop)


def _saves(path: Path, last_content: list[bytes], stop: Event | None) -> Iterator[None]:
    beside = {path.name, *(Path(name).name for name in _modules(path))}
    # the folders, because watching a file ends when another one replaces it
    folders = {path.resolve().parent, *((path.resolve().parent / name).parent for name in _modules(path))}
    for _ in watchfiles.watch(
        *folders,
        watch_filter=lambda change, changed: Path(changed).name in beside,
        step=SETTLED_MS,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        recursive=False,
        raise_interrupt=True,
        stop_event=stop,
    ):
        content = _content(path)
        if content and content != last_content:
            last_content = content
            yield


def _content(path: Path) -> list[bytes]:
    """The content of the file and of its modules; empty while there is no file, or an empty one."""
    try:
        homework = path.read_bytes()
    except OSError:  # an editor is replacing it
        return []
    return [homework, *_modules(path).values()] if homework else []


def _modules(path: Path) -> dict[str, bytes]:
    try:
        return modules_beside(path)
    except OSError:
        return {}
