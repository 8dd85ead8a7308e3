"""Finds and verifies the files that a student hands in, and puts them together under the right names.

It decides whose work it is, by the id in the code and in file names, and which file has which role. It
decides whether weights fit the program, and what is copied or zipped. Where nothing fits, it says what is
wrong. It never hands anything in, and never grades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course.variant_values import written_id
from grader.domain.analyzed_program import Place, Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_files import STUDENT_ID, AskedFile
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.evidence import Checkpoint
from grader.domain.submission import Role, Submission
from grader.files.zip_archive import zipped
from grader.intake import intake
from grader.students.candidates import (
    OPTIONS,
    RoleCandidate,
    candidate,
    checked_id,
    inferred_id,
    named_ids,
    stubs,
)
from grader.students.homework import local_assignment
from grader.students.own_check import LocalCheck, local_check
from grader.students.own_machine import OwnWorkers, own_program, own_seed, with_own_machine_limits

FOLDER = "handin"


@dataclass(frozen=True)
class PackedFile:
    """One of the files to hand in.

    Attributes:
        title: The title of the model that it belongs to, where several are trained.
        needed: Without it there is no grade.
        name: The name that it must have.
        source: The student's file; None when there is none.
        target: Where it was put; None when it was not packed.
        problem: What is wrong and what to do; empty when nothing is wrong.
        notes: What else the student should know.
    """

    role: str
    name: str
    source: Path | None
    target: Path | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    title: str = ""
    needed: bool = True


@dataclass(frozen=True)
class Package:
    """What was put together.

    Attributes:
        modules: The modules that the code imports, under the names that it imports them by.
        archive: The zip, if one was asked for and everything is in it.
        program: The code as it was read: what will be trained, and what is left out.
        assignment: Whose files they are.
        student_id: Whose work it is.
        checked: What the public checks found; None: they were not made.
    """

    folder: Path
    assignment: Assignment
    files: tuple[PackedFile, ...]
    modules: tuple[PackedFile, ...] = ()
    archive: Path | None = None
    program: Program | None = None
    student_id: str = ""
    checked: LocalCheck | None = None

    @property
    def trains(self) -> bool:
        """Whether the grader trains it."""
        return self.assignment.data is not None

    @property
    def complete(self) -> bool:
        """Whether every needed file was packed, and none has a problem."""
        return all(
            (file.target is not None and not file.problem) or (file.source is None and not file.needed)
            for file in (*self.files, *self.modules)
        )


def package(
    folder: Path,
    assignment: Assignment,
    student_id: str,
    *,
    given: Mapping[str, Sequence[Path]] | None = None,
    out: Path | None = None,
    force: bool = False,
    zipped: bool = False,
) -> Package:
    """Find, verify and copy the files to hand in. Good files are packed, whatever is wrong with the others.

    Args:
        folder: Where the student's files are.
        student_id: Letters, digits, `-` and `_`.
        given: Files that the student names; the others are looked for in the folder.
        out: The target folder; None: `handin` in the folder.
        force: Replace files of the same names with other content.
        zipped: Also make a zip of all files.

    Raises:
        UsageError: The folder or a given file does not exist.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder. Give the folder with your homework.")
    named_files = _named_files(given or {}, assignment)
    candidates = {
        asked: RoleCandidate(named_files[asked])
        if asked in named_files
        else candidate(folder, asked, student_id, {file.name for file in assignment.provided})
        for asked in assignment.asked_files
    }
    problems = {
        asked: _intake_problem(asked, file_candidate, student_id, assignment)
        for asked, file_candidate in candidates.items()
    }
    notes, program = _read_and_tried(candidates, problems, assignment)
    destination = out or folder / FOLDER
    titles = {measure.id: measure.title for measure in assignment.measures}
    files = []
    for asked, file_candidate in candidates.items():
        problem = problems[asked]
        suffix = file_candidate.path.suffix.lower() if file_candidate.path else ""
        target = destination / asked.name(student_id, suffix if suffix in asked.suffixes else "")
        if file_candidate.path is not None and not problem.fatal:
            problem = _copy_problem(file_candidate.path, target, force) or problem
        done = target if file_candidate.path is not None and not problem.fatal else None
        also, title = (*file_candidate.notes, *notes.get(asked, ())), titles.get(asked.measure, "")
        files.append(
            PackedFile(
                asked.role,
                target.name,
                file_candidate.path,
                done,
                problem=problem.text,
                notes=also,
                title=title,
                needed=asked.required,
            )
        )
    code = _code_path(candidates)
    handed_out = {file.name for file in assignment.provided}
    imported = [name for name in program.modules if name not in handed_out] if program else []
    modules = _packed_modules(code, imported, destination, force) if code else ()
    packed = Package(destination, assignment, tuple(files), modules, program=program, student_id=student_id)
    if not (zipped and packed.complete):
        return packed
    name = assignment.file_stem.replace(STUDENT_ID, student_id)
    return replace(packed, archive=_archive(packed, f"{name}.zip", force))


def _named_files(by_role: Mapping[str, Sequence[Path]], assignment: Assignment) -> dict[AskedFile, Path]:
    """The files that the student names, by what they are meant as.

    Raises:
        UsageError: There is no such file, or two are meant as the same one.
    """
    named: dict[AskedFile, Path] = {}
    for role, paths in by_role.items():
        of_role = [asked for asked in assignment.asked_files if asked.role == role]
        if not of_role:
            roles = " and ".join(dict.fromkeys(asked.role for asked in assignment.asked_files))
            raise UsageError(f"{role}: this assignment asks for no such file. It asks for {roles}.")
        for path in paths:
            option = f"{OPTIONS[role]} {path}" if role in OPTIONS else f"--file {role}={path}"
            if not path.is_file():
                raise UsageError(f"{option}: there is no such file.")
            fitting = (
                [asked for asked in of_role if asked.has_name_part(path.name)]
                if len(of_role) > 1
                else of_role
            )
            if not fitting:
                parts = " or ".join(f"`{asked.name_part}`" for asked in of_role)
                raise UsageError(
                    f"{option}: its name does not say which model it belongs to. Put {parts} in it."
                )
            if fitting[0] in named:
                raise UsageError(f"{option}: {named[fitting[0]].name} is for the same. Name one.")
            named[fitting[0]] = path
    return named


def _code_path(candidates: Mapping[AskedFile, RoleCandidate]) -> Path | None:
    return next(
        (file_candidate.path for asked, file_candidate in candidates.items() if asked.role == Role.CODE), None
    )


@dataclass(frozen=True)
class _Problem:
    """What is wrong with a file; if it is fatal, the file is not packed."""

    text: str = ""
    fatal: bool = False


def _intake_problem(
    asked: AskedFile, file_candidate: RoleCandidate, student_id: str, assignment: Assignment
) -> _Problem:
    """What the grader's intake would object to in a file."""
    if file_candidate.path is None:
        return _Problem(file_candidate.problem, fatal=True)
    submission = Submission(student_id, assignment.id, (file_candidate.path,), digest="", partial=True)
    try:
        refused = intake(submission, assignment).refused
    except OSError as error:
        reason = f"{file_candidate.path.name} cannot be read ({error.strerror}). Change its permissions."
        return _Problem(reason, fatal=True)
    if refused:
        return _Problem(refused[0].reason, fatal=True)
    if file_candidate.path.suffix.lower() not in asked.suffixes:
        return _Problem(
            f"{file_candidate.path.name}: what counts here is {' or '.join(asked.suffixes)}.", fatal=True
        )
    return _Problem()


def _read_and_tried(
    candidates: Mapping[AskedFile, RoleCandidate], problems: dict[AskedFile, _Problem], assignment: Assignment
) -> tuple[dict[AskedFile, tuple[str, ...]], Program | None]:
    """Read the code and try the weights with it; notes by file, and the program that was read.

    What is wrong with the code, or with weights that do not fit it, is added to `problems`.
    """
    notes: dict[AskedFile, tuple[str, ...]] = {}
    code, program = None, None
    for asked, file_candidate in candidates.items():
        if asked.role == Role.CODE and file_candidate.path is not None and not problems[asked].fatal:
            try:
                code, program = file_candidate.path, own_program(file_candidate.path, assignment)
                notes[asked] = _unwritten_notes(file_candidate.path)
            except SubmissionError as error:
                problems[asked] = _Problem(str(error), fatal=True)
    for asked, file_candidate in candidates.items():
        if asked.role != Role.CHECKPOINT or file_candidate.path is None or problems[asked].fatal:
            continue
        if program is None or code is None:
            reason = "there is no code that its model could come from"
            problems[asked] = _Problem(f"{file_candidate.path.name} could not be tried, because {reason}.")
        elif assignment.data is not None:  # else there is nothing to ask the model about
            read = program.read_for(asked.measure)
            problems[asked] = _checkpoint_problem(
                _tried_checkpoint(read, code, file_candidate.path, assignment), file_candidate.path
            )
    return notes, program


def _packed_modules(
    code: Path, names: Sequence[str], destination: Path, force: bool
) -> tuple[PackedFile, ...]:
    """The student's own modules that the code imports, copied beside it."""
    packed = []
    for name in names:
        source, target = code.parent / name, destination / name
        if source.is_file():  # else a cell of the notebook writes it
            problem = _copy_problem(source, target, force) or _Problem()
            done = None if problem.fatal else target
            packed.append(PackedFile(Role.CODE, name, source, done, problem.text))
    return tuple(packed)


def _unwritten_notes(code: Path) -> tuple[str, ...]:
    count = stubs(code)
    if not count:
        return ()
    return (f"{count} of its parts {'is' if count == 1 else 'are'} not written yet.",)


def _tried_checkpoint(program: Program, code: Path, weights: Path, assignment: Assignment) -> Checkpoint:
    """Load the weights into the program's model, and ask it about two black images."""
    import numpy as np

    from grader.kit.splits import Splits
    from grader.training import Job, measured_checkpoint

    data = assignment.required_data()
    images = np.zeros((2, *data.image_shape), dtype=np.uint8)
    labels = np.zeros(2, dtype=np.int64)
    names = ("first", "second")
    splits = Splits("black", data.classes, images, labels, names, images, labels, names)
    job = Job(
        program,
        with_own_machine_limits(assignment).limits,
        splits=splits,
        seed=own_seed(code, "training"),
        assignment=assignment.id,
    )
    with OwnWorkers(assignment, code.parent) as workers:
        return measured_checkpoint(workers, job, weights.read_bytes(), weights.name)


def _checkpoint_problem(tried: Checkpoint, weights: Path) -> _Problem:
    if tried.status == "fits":
        return _Problem()
    if tried.status == "whole_model":
        return _Problem(tried.reason)
    if tried.status == "not_tried":
        return _Problem(f"{tried.reason} So nobody knows whether the weights fit.")
    return _Problem(tried.reason or f"{weights.name} does not fit the model.", fatal=True)


def _copy_problem(source: Path, target: Path, force: bool) -> _Problem | None:
    """Copy a file, unless another one is in its place; the problem, if any."""
    content = source.read_bytes()
    try:
        if target.is_file() and target.read_bytes() == content:
            return None
        if target.exists() and not force:
            return _Problem(
                f"{target} is there already, with different content from {source.name}. To replace it: "
                "--force",
                fatal=True,
            )
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
        raise UsageError(f"{target} is there already, with different content. To replace it: --force")
    target.write_bytes(content)
    return target


# --- handin ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HandinRequest:
    """What is to be put together for handing in.

    Attributes:
        source: Where the student's files are.
        working: The folder that the student works in.
        student_id: None: as the code states it, else as the file names begin.
        confirmed: The id counts although the code states another one.
        checked: The public checks are made, too.
        given: Files that the student names; the others are looked for.
        out: The target folder; None: `handin` in `source`.
        zipped: Also make a zip of all files.
        force: Replace files of the same names with other content.
        folder, assignment_id, course: The assignment: see `HomeworkRequest`.
    """

    source: Path
    working: Path
    student_id: str | None = None
    confirmed: bool = False
    checked: bool = True
    given: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    out: Path | None = None
    zipped: bool = False
    force: bool = False
    folder: Path | None = None
    assignment_id: str | None = None
    course: Path | None = None


def pack_handin(request: HandinRequest) -> Package:
    """Find, verify and copy the files to hand in. Good files are packed, whatever is wrong with the others.

    Raises:
        UsageError: There is no such folder, file, id or assignment.
        CourseError: A file of the assignment is malformed.
    """
    local = local_assignment(
        (request.source, request.working),
        folder=request.folder,
        assignment_id=request.assignment_id,
        course=request.course,
    )
    packed = package(
        request.source,
        local.assignment,
        _student_id(request, local.assignment),
        given=request.given,
        out=request.out,
        force=request.force,
        zipped=request.zipped,
    )
    code = next((file.source for file in packed.files if file.role == Role.CODE), None)
    if not request.checked or code is None or packed.program is None:
        return packed
    return replace(packed, checked=local_check(code, local))


def _student_id(request: HandinRequest, assignment: Assignment) -> str:
    """Whose work it is, according to the person, the code, or the file names.

    Raises:
        UsageError: None of them says, or two of them contradict each other.
    """
    named = checked_id(request.student_id) if request.student_id else ""
    if not request.source.is_dir():
        return named or inferred_id(request.source, assignment)  # what is wrong is said by who packs
    stated = _stated_id(request, assignment, named)
    if stated is None or request.confirmed or stated.value == named:
        return named or inferred_id(request.source, assignment)
    is_example = stated.value == assignment.example_id
    what = f"STUDENT_ID at {stated.place} is " + (
        f"still {stated.value}, as it was handed out" if is_example else stated.value
    )
    remedy = "Correct that line and save the weights again under the right name"
    if named:
        raise UsageError(
            f"--id {named}, and {what}. Whose work is it? {remedy}; or, if --id is right, add --id-is-right."
        )
    if is_example:
        raise UsageError(f"{what}. {remedy}; or say whose work it is: --id STUDENT_ID --id-is-right.")
    ids = named_ids(request.source, assignment) - {stated.value}
    if ids:
        raise UsageError(
            f"{what}, and the names of files here say {' and '.join(sorted(ids))}. Say whose work it is: "
            f"grader pack --id {stated.value}"
        )
    return checked_id(stated.value)


@dataclass(frozen=True)
class _StatedId:
    value: str
    place: Place


def _stated_id(request: HandinRequest, assignment: Assignment, student_id: str) -> _StatedId | None:
    """The id that the code states; None where it cannot be read, or states none."""
    code = next(iter(request.given.get(Role.CODE, ())), None) or next(
        (
            candidate(request.source, asked, student_id, {file.name for file in assignment.provided}).path
            for asked in assignment.asked_files
            if asked.role == Role.CODE
        ),
        None,
    )
    if code is None or not code.is_file():
        return None
    try:
        program = own_program(code, assignment)
    except (SubmissionError, UsageError):
        return None  # whoever packs it says what is wrong
    stated = [
        _StatedId(value_and_line[0], Place(file, value_and_line[1]))
        for file, text in (program.source or {}).items()
        if file not in program.modules and (value_and_line := written_id(text)) is not None
    ]
    return stated[-1] if stated else None
