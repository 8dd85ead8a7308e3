"""The process that makes a kernel's checks: it reads requests, one a line, and answers each.

It stays after an answer, with everything loaded, so that the next check takes a second. It ends with the
kernel, or when nobody has asked for a while. The student's code runs in separate workers, as for
`grader check`.
"""

import dataclasses
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from grader.domain.errors import GraderError, NoAssignmentFound

if TYPE_CHECKING:
    from grader.domain.evidence import Finding
    from grader.judge.examination import Checks
    from grader.jupyter.notebook_page import NotebookPage
    from grader.students.homework import LocalAssignment
    from grader.students.own_machine import OwnWorkers

NAME = "notebook.ipynb"  # the notebook need not be a file, and has no name then
IDLE_SECONDS = 600.0
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class CheckRequest:
    """What a kernel asks for.

    Attributes:
        executions: What it executed, in order: number, text, and the cell's id where that is known.
        working: The folder that it works in.
        part: The only part that is asked for; empty: all are.
        folder: The assignment's folder, where it was named.
    """

    executions: tuple[tuple[int, str, str], ...]
    working: str
    part: str = ""
    folder: str | None = None


def requested(line: str) -> CheckRequest:
    """The request that a line holds."""
    fields = json.loads(line)
    return CheckRequest(
        tuple((number, text, cell) for number, text, cell in fields["executions"]),
        fields["working"],
        fields["part"],
        fields["folder"],
    )


class CheckService:
    """Answers requests one after another, and keeps what requests about the same assignment need."""

    def __init__(self, requests: Iterator[CheckRequest], tell: Tell) -> None:
        self._requests = requests
        self._tell = tell

    def serve(self) -> None:
        """Answer all requests."""
        following = next(self._requests, None)
        while (request := following) is not None:
            try:
                following = self._about_one_assignment(request)
            except GraderError as error:
                self._refuse(request, error)
                following = next(self._requests, None)

    def _about_one_assignment(self, first: CheckRequest) -> CheckRequest | None:
        """Answer requests until one is about another assignment than the first; returns that one."""
        from grader.students.own_check import with_checks
        from grader.students.own_machine import OwnWorkers, with_own_machine_limits

        local, version = _assignment(first), _version(first)
        _of_part(local, first.part)  # an unknown part is reported before anything slow
        assignment = with_own_machine_limits(local.assignment)
        with OwnWorkers(assignment, Path(first.working)) as workers:

            def answer_all(checks: "Checks") -> CheckRequest | None:
                request: CheckRequest | None = first
                while request is not None and _version(request) == version:
                    try:
                        self._answer(request, _of_part(local, request.part), checks, workers)
                    except GraderError as error:
                        self._refuse(request, error)
                    workers.warm_up()
                    request = next(self._requests, None)
                return request

            return with_checks(local, assignment, answer_all)

    def _answer(
        self, request: CheckRequest, local: "LocalAssignment", checks: "Checks", workers: "OwnWorkers"
    ) -> None:
        from grader.analysis.notebook import Execution, executed_notebook
        from grader.cli.homework_view import CheckView
        from grader.jupyter.notebook_page import NotebookPage
        from grader.students.own_check import found_by
        from grader.students.own_machine import own_program, with_own_machine_limits
        from grader.students.prospect import Outcome

        path, page = Path(request.working) / NAME, NotebookPage()
        code = executed_notebook(Execution(*execution) for execution in request.executions)
        assignment, done = with_own_machine_limits(local.assignment), 0
        page.title(f"{NAME}: {assignment.title}")
        with CheckView(path, local.assignment, page, local.values, local.part) as view:
            program = own_program(path, assignment, code)
            view.read(program)

            def report(finding: "Finding") -> None:
                nonlocal done
                done += 1
                view.finding(finding)
                total = len(assignment.checks)
                self._show(page, f"{done} of {total} checks done" if done < total else "Looking at the model")

            check = found_by(
                checks, path, program, assignment, workers, report, tried=True, part=local.part, code=code
            )
        right = view.show_rest(check, details=False) is Outcome.RIGHT
        self._tell(_answer_document(page.bundle(), passed=right, findings=check.findings))

    def _show(self, page: "NotebookPage", progress: str) -> None:
        self._tell(_answer_document(page.bundle(progress), last=False))

    def _refuse(self, request: CheckRequest, error: GraderError) -> None:
        from grader.jupyter.notebook_page import NotebookPage

        page = NotebookPage()
        page.verdict(False, _sentence(request, error))
        self._tell(_answer_document(page.bundle()))


def _answer_document(
    shown: dict[str, str], *, passed: bool = False, findings: Sequence["Finding"] = (), last: bool = True
) -> dict[str, Any]:
    from grader.analysis.notebook import OWN_CHECK

    return {
        "shown": shown,
        "metadata": {OWN_CHECK: True},
        "passed": passed,
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "last": last,
    }


def _assignment(request: CheckRequest) -> "LocalAssignment":
    from grader.students.homework import local_assignment

    folder = Path(request.working, request.folder) if request.folder is not None else None
    return local_assignment((Path(request.working),), folder=folder)


def _of_part(local: "LocalAssignment", part: str) -> "LocalAssignment":
    return local.of_part(part) if part else local


def _version(request: CheckRequest) -> tuple[str, str | None, tuple[int, ...]]:
    """Which assignment a request is about: where it is, and when its files were written."""
    from grader.course.toml_file import FILE
    from grader.files.known_folders import public_checks

    folder = Path(request.working, request.folder or "")
    files = [folder / FILE, *public_checks(folder)]
    written = tuple(path.stat().st_mtime_ns for path in files if path.is_file())
    return request.working, request.folder, written


def _sentence(request: CheckRequest, error: GraderError) -> str:
    """What went wrong, for a person at a notebook."""
    if isinstance(error, NoAssignmentFound):
        return (
            "No assignment was found: the folder that the course handed out is not where the notebook works "
            f"({request.working}). Copy it to this machine and name it once: "
            '`grader.check(assignment="FOLDER")`.'
        )
    return str(error)


def main() -> None:
    """Serve the process that started this one, over standard input and output."""
    signal.signal(signal.SIGTERM, _stop)
    # nothing else that prints may get between the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        CheckService(_requests(), tell).serve()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(1)  # the thread that reads requests may still be waiting for one


def _stop(number: int, frame: FrameType | None) -> None:
    """Interrupt with an exception that pytest does not swallow."""
    raise KeyboardInterrupt


def _requests() -> Iterator[CheckRequest]:
    """The requests, until the input ends, or no request has come for a while."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            return
        if not line:
            return
        yield requested(line)


if __name__ == "__main__":
    main()
