"""A student's own file on the student's own machine: read in this process, run in plain worker processes.

Nothing here needs torch, so the first worker process is started before anything slow is imported.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_files import AskedFile
from grader.domain.assignment_versions import PUBLIC_KEY, submission_seed
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.limits import MEGABYTE
from grader.domain.submission import Role
from grader.files.file_names import modules_beside
from grader.files.known_folders import homework_in
from grader.intake.naming import Closeness, name_match

if TYPE_CHECKING:
    from grader.judge.student import Student
    from grader.sandbox.child_processes import Child, Processes

WORKER = "grader.worker"


def homework_file(folder: Path) -> Path:
    """The homework in a folder: `homework.py`, else the notebook.

    Raises:
        UsageError: It has neither.
    """
    if (path := homework_in(folder)) is not None:
        return path
    raise UsageError(f"There is no homework.py or homework.ipynb in {folder}. Name the file to be checked.")


def file_content(path: Path) -> bytes:
    """The bytes of a student's file.

    Raises:
        UsageError: It does not exist or cannot be read.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{path} {what}. Give the homework's .py or .ipynb file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}). Change its permissions.") from error


def own_program(path: Path, assignment: Assignment, code: bytes | None = None) -> Program:
    """The program in a student's file, with the modules beside it that it imports.

    Args:
        path: The file, or where it would be.
        code: What a kernel executed, which is not a file: see `executed_notebook`; None: the file is read.

    Raises:
        UsageError: There is no such file.
        SubmissionError: It cannot be read as a script or a notebook, or is larger than what is accepted.
    """
    from grader.analysis import program
    from grader.intake.file_roles import size_fault

    data = file_content(path) if code is None else code
    _require_provided(path, assignment)
    suffixes = [suffix for file in assignment.files if file.role == "code" for suffix in file.suffixes]
    if path.suffix.lower() not in suffixes:
        raise SubmissionError(f"{path.name} is not a code file. Give the {' or '.join(suffixes)} file.")
    if code is None and (too_large := size_fault(Role.CODE, path.name, len(data), assignment.limits)):
        raise SubmissionError(too_large)
    try:
        modules = modules_beside(path, code)
    except OSError as error:
        raise UsageError(
            f"{error.filename}, beside {path.name}, cannot be read ({error.strerror}). Change its "
            "permissions, or move it."
        ) from error
    return program(path.name, data, assignment.program_rules, modules, executed=code is not None)


def _require_provided(path: Path, assignment: Assignment) -> None:
    """Check that what the course provides is beside a homework.

    Raises:
        UsageError: A file is missing, or is not the one that the course provides.
    """
    from grader.course.homework_files import file_digest

    handed_out = assignment.provided_folder
    if handed_out.resolve() == path.parent.resolve():  # where it is missing, or was changed
        copy = "Copy it there from what the course handed out"
    else:
        copy = f"Copy it there from {handed_out}"
    for file in assignment.provided:
        beside = path.parent / file.name
        if not beside.is_file():
            raise UsageError(f"{file.name}, which the course provides, is not beside {path.name}. {copy}.")
        if file_digest(beside) != file.sha256:
            raise UsageError(
                f"{file.name} beside {path.name} is not the file that the course provides. {copy}."
            )


def own_seed(path: Path, purpose: str, run: int = 1, code: bytes | None = None) -> int:
    """A seed from the file's content: the same for the same file, another one after every change.

    Args:
        purpose: `checks` or `training`; the seed for one does not reveal the other.
        run: Which of several trainings it is for, counted from 1.
        code: The file's content, where it is not a file.
    """
    digest = hashlib.sha256(file_content(path) if code is None else code).hexdigest()
    return submission_seed(PUBLIC_KEY, purpose, digest, run, bits=31)


def with_own_machine_limits(assignment: Assignment) -> Assignment:
    """The assignment with the limits of one's own machine: the first worker starts cold, and no other
    submission is waiting.
    """
    limits = assignment.limits
    longer = replace(
        limits,
        load_seconds=6 * limits.load_seconds,  # torch is imported while this clock runs
        call_seconds=2 * limits.call_seconds,
        checks_seconds=5 * limits.checks_seconds,
        training_seconds=7 * 24 * 3600.0,
    )
    return replace(assignment, limits=longer)


class StartedFrom(Protocol):
    """Makes worker processes; see `grader.sandbox.forkserver.LocalProcesses`."""

    def __call__(
        self, module: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path | None
    ) -> "Processes":
        """Processes of a module, with variables added to the surrounding environment."""


class OwnWorkers:
    """Worker processes on the student's own machine; the first one starts at once, to be ready when needed.

    Libraries find what the course provides and download nothing: what would be missing during grading is
    missing here, too. Calling the object gives a worker. Every worker ends with the context.
    """

    def __init__(self, assignment: Assignment, folder: Path, processes: "StartedFrom | None" = None) -> None:
        """Start the first worker.

        Args:
            assignment: Of its limits for processes, only the one on output is enforced on one's own machine.
            folder: The homework's folder, with the files that the course provides.
            processes: Makes the workers; None: each is a new process.
        """
        from grader.sandbox.process_limits import ProcessLimits
        from grader.sandbox.readable_files import GivenFiles, lay_out_cache

        self._cache = Path(tempfile.mkdtemp(prefix="grader-cache-"))
        files = {file.name: folder / file.name for file in assignment.provided}
        places = {place: file.name for file in assignment.provided for place in file.cached}
        lay_out_cache(GivenFiles(files, places), self._cache)
        self._processes = processes
        self._limits = ProcessLimits(output_kb=assignment.limits.output_kb)
        # where nothing is provided, code may rely on the folder in which the command was run
        self._folder = folder.resolve() if assignment.provided else None
        self._all: list[Child] = []
        self._next: Child | None = self._started()

    def __call__(self) -> "Child":
        """A worker that nobody else uses."""
        worker, self._next = self._next or self._started(), None
        return worker

    def prepare(self) -> None:
        """Start the next worker while others are at work."""
        self._next = self._next or self._started()

    def warm_up(self) -> None:
        """End all workers, and start one that already loads whatever a homework may import."""
        self._end_all()
        self._next = self._started("--warm")

    def _started(self, *arguments: str) -> "Child":
        from grader.sandbox.forkserver import LocalProcesses
        from grader.sandbox.readable_files import cache_environment

        started_from = self._processes or LocalProcesses
        env = cache_environment(self._cache)
        child = started_from(WORKER, arguments, env=env, folder=self._folder).spawn(self._limits)
        self._all.append(child)
        return child

    def _end_all(self) -> None:
        self._next = None
        while self._all:
            self._all.pop().close()

    def close(self) -> None:
        """End all workers."""
        from grader.sandbox.readable_files import remove_cache

        self._end_all()
        remove_cache(self._cache)

    def __enter__(self) -> "OwnWorkers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def own_student(
    path: Path, program: Program, assignment: Assignment, workers: OwnWorkers, code: bytes | None = None
) -> "Student":
    """The student's file as the checks see it. Imports torch.

    Args:
        assignment: With the limits that hold here: see `with_own_machine_limits`.
        code: The file's content, where it is not a file.
    """
    import torch

    from grader.judge.student import Student

    torch.set_num_threads(1)  # the checks are small, and the worker needs the other cores
    files = own_files(path.parent, assignment)
    seed = own_seed(path, "checks", code=code)
    return Student(workers, program, assignment, seed=seed, pictures=False, files=files)


def own_files(folder: Path, assignment: Assignment) -> dict[str, bytes]:
    """The files beside a homework for the roles that the assignment defines itself, by role.

    A name exactly as asked for counts most, then the role's name (`metrics.csv`), then the newest file.

    Raises:
        SubmissionError: A file is too large.
    """
    from grader.intake.file_roles import bounded_content

    most_bytes = assignment.limits.file_mb * MEGABYTE
    provided = {file.name for file in assignment.provided}
    by_role: dict[str, Path] = {}
    # a link to nothing is no file: Emacs locks what it has not saved with one, `.#homework.py`
    files = [path for path in folder.iterdir() if path.is_file()]
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        asked = assignment.asked_file(path.name)
        if asked is None or asked.role not in assignment.own_roles or path.name in provided:
            continue
        best_so_far = by_role.get(asked.role)
        if best_so_far is None or _rank(path, asked) < _rank(best_so_far, asked):
            by_role[asked.role] = path
    return {role: bounded_content(path.resolve(), most_bytes) for role, path in by_role.items()}


def _rank(path: Path, asked: AskedFile) -> int:
    """How well a file's name fits what was asked for; lower is better."""
    if name_match(path.name, asked.stem).closeness is Closeness.EXACT:
        return 0
    return 1 if path.stem.lower() == asked.role else 2
