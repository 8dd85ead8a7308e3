"""The files that a student hands in: found, verified, and put together under the right names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.evidence import Checkpoint
from grader.domain.program import Program
from grader.domain.submission import Role, Submission
from grader.files.zip_archive import zipped
from grader.intake import intake
from grader.students.candidates import RoleCandidate, asked_name, candidate, stubs
from grader.students.own_machine import OwnWorkers, own_program, own_seed, patient

FOLDER = "handin"


@dataclass(frozen=True)
class PackedFile:
    """One of the files to hand in.

    Attributes:
        name: The name that it must have.
        source: The student's file; None when there is none.
        target: Where it was put; None when it was not packed.
        problem: What is wrong and what to do; empty when nothing is.
        notes: What else to know.
    """

    role: Role
    name: str
    source: Path | None
    target: Path | None
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Package:
    """What was put together.

    Attributes:
        modules: The modules that the code imports, under the names that it imports them by.
        archive: The zip, if one was asked for and everything is in it.
        program: The code as it was read: what will be trained, and what is left out.
    """

    folder: Path
    files: tuple[PackedFile, ...]
    modules: tuple[PackedFile, ...] = ()
    archive: Path | None = None
    program: Program | None = None

    @property
    def complete(self) -> bool:
        """Whether every file is there, and none has a problem."""
        return all(file.target is not None and not file.problem for file in (*self.files, *self.modules))


def package(
    folder: Path,
    assignment: Assignment,
    student_id: str,
    *,
    given: Mapping[Role, Path] | None = None,
    out: Path | None = None,
    force: bool = False,
    zipped: bool = False,
) -> Package:
    """Find, verify and copy the files to hand in. What is fine is packed, whatever is wrong with the others.

    Args:
        folder: Where the student's files are.
        student_id: Letters, digits, `-` and `_`.
        given: Files that the student names; the others are looked for in the folder.
        out: Where to; `handin` in the folder by default.
        force: Replace files of the same names with other content.
        zipped: Also make a zip of all of them.

    Raises:
        UsageError: The folder or a given file does not exist.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder. Give the folder with your homework.")
    for role, path in (given or {}).items():
        if not path.is_file():
            raise UsageError(f"--{role.value} {path}: there is no such file.")
    found = {
        required.role: RoleCandidate(given[required.role])
        if given and required.role in given
        else candidate(folder, required, assignment, student_id)
        for required in assignment.files
    }
    problems = {role: _problem(role, one, student_id, assignment) for role, one in found.items()}
    notes, program = _verified(found, problems, assignment)
    destination = out or folder / FOLDER
    files = []
    for required in assignment.files:
        one, problem = found[required.role], problems[required.role]
        own = one.path.suffix.lower() if one.path else ""
        suffix = own if own in required.suffixes else required.suffixes[0]
        target = destination / asked_name(assignment, student_id, suffix)
        if one.path is not None and not problem.fatal:
            problem = _copied(one.path, target, force) or problem
        done = target if one.path is not None and not problem.fatal else None
        also = (*one.notes, *notes.get(required.role, ()))
        files.append(PackedFile(required.role, target.name, one.path, done, problem.text, also))
    code = found[Role.CODE].path if program is not None else None
    modules = _packed_modules(code, program, destination, force) if code and program else ()
    packed = Package(destination, tuple(files), modules, program=program)
    if not (zipped and packed.complete):
        return packed
    return replace(packed, archive=_archive(packed, asked_name(assignment, student_id, ".zip"), force))


@dataclass(frozen=True)
class _Problem:
    """What is wrong with a file; a fatal one keeps it from being packed."""

    text: str = ""
    fatal: bool = False


def _problem(role: Role, found: RoleCandidate, student_id: str, assignment: Assignment) -> _Problem:
    """What the intake of the grader would say of a file."""
    if found.path is None:
        return _Problem(found.problem, fatal=True)
    submission = Submission(student_id, assignment.id, (found.path,), digest="", partial=True)
    refused = intake(submission, assignment).refused
    if refused:
        return _Problem(refused[0].reason, fatal=True)
    suffixes = [suffix for file in assignment.files if file.role is role for suffix in file.suffixes]
    if found.path.suffix.lower() not in suffixes:
        return _Problem(f"{found.path.name}: what counts here is {' or '.join(suffixes)}.", fatal=True)
    return _Problem()


def _verified(
    found: Mapping[Role, RoleCandidate], problems: dict[Role, _Problem], assignment: Assignment
) -> tuple[dict[Role, tuple[str, ...]], Program | None]:
    """Notes by role, and the code as it was read.

    Problems with the code, and of the weights with the code, are added to `problems`.
    """
    code, weights = (
        found[role].path if role in found and not problems[role].fatal else None
        for role in (Role.CODE, Role.CHECKPOINT)
    )
    notes: dict[Role, tuple[str, ...]] = {}
    program = None
    if code is not None:
        try:
            program = own_program(code, assignment)
            notes[Role.CODE] = _unwritten(code)
        except SubmissionError as error:
            problems[Role.CODE] = _Problem(str(error), fatal=True)
    if weights is not None and (program is None or code is None):
        reason = "there is no code that its model could come from"
        problems[Role.CHECKPOINT] = _Problem(f"{weights.name} could not be tried, because {reason}.")
    elif weights is not None and program is not None and code is not None:
        problems[Role.CHECKPOINT] = _misfit(
            _tried(program, own_seed(code, "training"), weights, assignment), weights
        )
    return notes, program


def _packed_modules(code: Path, program: Program, destination: Path, force: bool) -> tuple[PackedFile, ...]:
    """The modules that the code imports, copied beside it."""
    packed = []
    for name in program.modules:
        source, target = code.parent / name, destination / name
        if source.is_file():  # else a cell of the notebook writes it
            problem = _copied(source, target, force) or _Problem()
            done = None if problem.fatal else target
            packed.append(PackedFile(Role.CODE, name, source, done, problem.text))
    return tuple(packed)


def _unwritten(code: Path) -> tuple[str, ...]:
    count = stubs(code)
    if not count:
        return ()
    return (f"{count} of its parts {'is' if count == 1 else 'are'} not written yet.",)


def _tried(program: Program, seed: int, weights: Path, assignment: Assignment) -> Checkpoint:
    """Load the weights into the model of the program and ask it about two black images."""
    import numpy as np

    from grader.kit.splits import Splits
    from grader.training import Job, measured_checkpoint

    images = np.zeros((2, *assignment.data.image_shape), dtype=np.uint8)
    labels = np.zeros(2, dtype=np.int64)
    names = ("first", "second")
    splits = Splits("black", assignment.data.classes, images, labels, names, images, labels, names)
    job = Job(program, splits, patient(assignment).limits, seed=seed)
    with OwnWorkers(assignment.limits) as workers:
        return measured_checkpoint(workers, job, weights.read_bytes(), weights.name)


def _misfit(tried: Checkpoint, weights: Path) -> _Problem:
    if tried.status == "fits":
        return _Problem()
    if tried.status == "whole_model":
        return _Problem(tried.reason)
    if tried.status == "not_tried":
        return _Problem(f"{tried.reason} So nobody knows whether the weights fit.")
    return _Problem(tried.reason or f"{weights.name} does not fit the model.", fatal=True)


def _copied(source: Path, target: Path, force: bool) -> _Problem | None:
    """Copy a file, unless another one is in its place; what is wrong, if anything."""
    content = source.read_bytes()
    if target.is_file() and target.read_bytes() == content:
        return None
    if target.exists() and not force:
        return _Problem(
            f"{target} is there already, with other content than {source.name}. To replace it: --force",
            fatal=True,
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except OSError as error:
        return _Problem(
            f"{target} cannot be written ({error.strerror}). Choose another place: --out", fatal=True
        )
    return None


def _archive(packed: Package, name: str, force: bool) -> Path:
    """A zip of the packed files.

    Raises:
        UsageError: Another file is in its place.
    """
    content = zipped(
        (file.name, file.target.read_bytes())
        for file in (*packed.files, *packed.modules)
        if file.target is not None
    )
    target = packed.folder / name
    if target.exists() and target.read_bytes() != content and not force:
        raise UsageError(f"{target} is there already, with other content. To replace it: --force")
    target.write_bytes(content)
    return target
