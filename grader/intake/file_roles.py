"""Decides which of a submission's files are accepted, in which roles, and why the others are not.

It decides which file is the homework, the report or the weights, and which modules the homework may
import. It also says what is recorded about the accepted files, and which contents checks may read. It never
decides whose a submission is.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.assignment_files import AskedFile
from grader.domain.errors import SubmissionError
from grader.domain.formatting import about_file, file_named
from grader.domain.limits import MEGABYTE, Limits
from grader.domain.submission import AcceptedFile, Intake, RefusedFile, Role, Submission
from grader.files.file_names import MOST_MODULES, spoken_of
from grader.intake.naming import ANY_ID, Closeness, name_match, refused_name
from grader.intake.unpacking import HERE, Opener
from grader.lms.downloads import read_name

MOST_BYTES = 10_000_000  # of all modules of a submission
# how the template's stubs begin, in a script and in the JSON of a notebook
STUBS = {".py": re.compile(rb'"TODO \w'), ".ipynb": re.compile(rb'\\"TODO \w')}


def own_modules(code: Path, others: Sequence[Path]) -> dict[str, Path]:
    """The modules beside a homework: name, with the folders before it -> path.

    Args:
        code: The script or notebook.
        others: The other code files of the submission. Prefixes that an LMS puts before a name are removed.
    """
    scripts = [path for path in others if path.suffix.lower() == ".py"]
    if not scripts:
        return {}
    top = Path(os.path.commonpath([path.parent for path in (code, *scripts)]))
    paths = {_name(path, top): path for path in scripts}
    contents = {name: path.read_bytes() for name, path in paths.items()}
    chosen: dict[str, Path] = {}
    size = 0
    for name in spoken_of(code.read_bytes(), contents)[:MOST_MODULES]:
        size += len(contents[name])
        if size <= MOST_BYTES:
            chosen[name] = paths[name]
    return chosen


def contents(modules: Mapping[str, Path]) -> dict[str, bytes]:
    """The contents of the modules, by name."""
    return {name: path.read_bytes() for name, path in modules.items()}


def _name(path: Path, top: Path) -> str:
    return (path.relative_to(top).parent / (read_name(path.name).name or path.name)).as_posix()


# --- accepted files --------------------------------------------------------------------------------------


def accepted_files(intake: Intake) -> tuple[AcceptedFile, ...]:
    """The files that count, with size and digest."""
    return tuple(_accepted_file(role, path) for role, path in intake.accepted)


def contents_of_others(intake: Intake, assignment: Assignment) -> dict[str, bytes]:
    """The contents of the files in the assignment's own roles, by role.

    Raises:
        SubmissionError: A file has been replaced since it was accepted.
    """
    most = assignment.limits.file_mb * MEGABYTE
    return {role: bounded_content(path, most) for role, path in intake.others.items()}


def bounded_content(path: Path, most: int) -> bytes:
    """The content of a file, which must not be a link nor larger than the limit.

    Args:
        path: The file.
        most: Bytes.

    Raises:
        SubmissionError: It is a link, is too large or cannot be read.
    """
    try:
        # opened before any check: what the name stands for may change in between
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise SubmissionError(f"{path.name}: cannot be read ({error.strerror}). Hand it in again.") from error
    if len(content) > most:
        raise SubmissionError(f"{path.name}: is over {most / MEGABYTE:g} MB in size. Hand in less.")
    return content


def _accepted_file(role: str, path: Path) -> AcceptedFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return AcceptedFile(role, read_name(path.name).name or path.name, path.stat().st_size, digest)


# --- acceptance ------------------------------------------------------------------------------------------


MANY = 5
PACKAGE = "__init__.py"
PACKED = {".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz"}


@dataclass(frozen=True)
class _Candidate:
    """A file that qualifies for a role, and how well its name fits: smaller sorts first."""

    path: Path
    name: str
    rank: tuple[int, int, int, str]
    stem: str


def intake(submission: Submission, assignment: Assignment, opener: Opener = HERE) -> Intake:
    """The files of a submission by role, what was refused and why, and what is missing.

    Args:
        submission: As `submissions` found it.
        assignment: Says which files are asked for and how large they may be.
        opener: Opens the checkpoint.
    """
    candidates: dict[AskedFile, list[_Candidate]] = {}
    refused = list(submission.set_aside)
    names_set_aside = {file.name for file in submission.set_aside}
    provided = {file.name for file in assignment.provided}
    for path in submission.files:
        name = read_name(path.name).name or path.name
        asked_file = assignment.asked_file(name)
        if asked_file is None and name in names_set_aside:
            continue  # an archive that could not be opened: its reason is already among the refused
        if name == PACKAGE and path.stat().st_size == 0:
            continue  # it only makes a folder a package
        if name in provided:
            reason: str | None = f"{name}: is what the course provides. It need not be handed in."
        else:
            reason = _fault(path, name, asked_file.role if asked_file else None, assignment, opener)
        if reason is None and asked_file is not None:
            rank = _rank(name, _asked_id(submission), asked_file)
            candidates.setdefault(asked_file, []).append(_Candidate(path, name, rank, asked_file.stem))
        else:
            refused.append(RefusedFile(name, reason or ""))
    chosen: dict[str, _Candidate] = {}
    further: dict[str, _Candidate] = {}
    modules: dict[str, Path] = {}
    parts = [component.name for component in assignment.components]
    for asked_file, rivals in candidates.items():
        ranked = _not_imported(rivals) if asked_file.role == Role.CODE else rivals
        best = ranked[0] if len(ranked) == 1 else min(ranked, key=lambda rival: _preference(rival, parts))
        if asked_file.measure in ("", assignment.measures[0].id):
            chosen[asked_file.role] = best
        else:
            further[asked_file.measure] = best
        if asked_file.role == Role.CODE:
            modules = own_modules(best.path, [rival.path for rival in rivals if rival is not best])
        refused += [
            RefusedFile(other.name, _second_choice(other, best, parts))
            for other in rivals
            if other is not best and other.path not in modules.values()
        ]
    missing = tuple(file.role for file in assignment.files if file.required and file.role not in chosen)
    return Intake(
        submission=submission,
        code=chosen[Role.CODE].path if Role.CODE in chosen else None,
        modules=modules,
        checkpoint=chosen[Role.CHECKPOINT].path if Role.CHECKPOINT in chosen else None,
        further_checkpoints={measure: candidate.path for measure, candidate in further.items()},
        report=chosen[Role.REPORT].path if Role.REPORT in chosen else None,
        others={role: chosen[role].path for role in assignment.own_roles if role in chosen},
        refused=_condensed(refused),
        missing=() if submission.partial else missing,
        notes=(
            *submission.notes,
            *(() if submission.partial else _name_notes((*chosen.values(), *further.values()), submission)),
        ),
    )


def _not_imported(candidates: list[_Candidate]) -> list[_Candidate]:
    """The files that may be the homework: those that no other one imports, if there are any.

    A file with the asked name takes precedence.
    """
    if len(candidates) == 1 or min(candidate.rank for candidate in candidates)[0] <= Closeness.NEARLY:
        return candidates
    imported = {
        path
        for candidate in candidates
        for path in own_modules(
            candidate.path, [other.path for other in candidates if other is not candidate]
        ).values()
    }
    return [candidate for candidate in candidates if candidate.path not in imported] or candidates


def _asked_id(submission: Submission) -> str:
    return submission.origin.asked_id(submission.student_id)


def _fault(path: Path, name: str, role: str | None, assignment: Assignment, opener: Opener) -> str | None:
    """Why a file cannot have any role, as a sentence, or None."""
    if path.is_symlink() or not path.is_file():
        return f"{name}: is a link or not a file. Hand in the file itself."
    if (reason := refused_name(name)) is not None:
        return reason
    size = path.stat().st_size
    if role is None:
        return _unasked_reason(name, assignment)
    if size == 0:
        return f"{name}: is empty. Save it again and hand in the saved file."
    if (too_large := size_fault(role, name, size, assignment.limits)) is not None:
        return too_large
    if role == Role.REPORT:
        return _report_fault(path, name)
    if role == Role.CHECKPOINT:
        return opener.checkpoint_fault(path, name)
    return None


def size_fault(role: str, name: str, size: int, limits: Limits) -> str | None:
    """Why a file of this size is not accepted in a role, as a sentence; None if it is.

    Args:
        size: In bytes.
    """
    most, unit = _largest(role, name, limits)
    if size <= most * unit:
        return None
    shown = f"{most} MB" if unit == MEGABYTE else f"{most} kB"
    return (
        f"{name}: is {size / unit:,.1f} {shown[-2:]} in size, but at most {shown} are accepted. "
        f"{_SMALLER.get(role, 'Keep in it what is asked for, and nothing else.')}"
    )


_SMALLER: dict[str, str] = {
    Role.CODE: "Clear the outputs of the notebook, or take data out of the code.",
    Role.CHECKPOINT: "Save model.state_dict() only, without the optimizer or the data.",
    Role.REPORT: "Print it with smaller pictures.",
}


def _largest(role: str, name: str, limits: Limits) -> tuple[int, int]:
    """The largest size of a file, and the unit in which it is given (bytes)."""
    if role == Role.CHECKPOINT:
        return limits.checkpoint_mb, MEGABYTE
    if role != Role.CODE:
        return limits.file_mb, MEGABYTE
    if Path(name).suffix.lower() == ".ipynb":
        return limits.notebook_mb, MEGABYTE
    return limits.source_kb, 1000


def _report_fault(path: Path, name: str) -> str | None:
    with path.open("rb") as file:
        head = file.read(1024)  # ISO 32000-1, annex H: readers search the first 1024 bytes for the header
    if b"%PDF-" in head:
        return None
    seems = " (it is a Word document under another name)" if head.startswith(b"PK") else ""
    return f"{name}: is not a PDF{seems}. Export the report as PDF and hand that in."


def _unasked_reason(name: str, assignment: Assignment) -> str:
    """Why a file whose suffix belongs to no role is refused."""
    asked = ", ".join(suffix for file in assignment.files for suffix in file.suffixes)
    suffix = Path(name).suffix.lower()
    if suffix == ".zip":
        return f"{name}: is an archive that was not unpacked. Hand in the files themselves ({asked})."
    if suffix in PACKED:
        return f"{name}: is not an archive that can be unpacked. Hand in the files themselves ({asked})."
    return f"{name}: was not asked for. What counts is {asked}."


def _rank(name: str, student_id: str, asked: AskedFile) -> tuple[int, int, int, str]:
    match = name_match(name, asked.stem)
    order = asked.suffixes.index(Path(name).suffix.lower())
    foreign = 1 if match.student_id not in (None, student_id) else 0
    homework = 0 if "homework" in name.lower() else 1
    return (match.closeness + foreign, homework, order, name)


def _preference(candidate: _Candidate, parts: Collection[str]) -> tuple[int, int, int, int, str]:
    """How well a file fits, smaller is better; of a script and a notebook, that in which more is written.

    The course hands out both. Whoever hands in the whole folder has worked in one of them.

    Args:
        parts: The names of what students write.
    """
    fits, homework, order, name = candidate.rank
    return (fits, homework, -_written(candidate, parts), order, name)


def _written(candidate: _Candidate, parts: Collection[str]) -> int:
    """How many parts a file has, less the places that are as they were handed out; 0 if it is no code."""
    stub = STUBS.get(candidate.path.suffix.lower())
    if stub is None:
        return 0
    content = candidate.path.read_bytes()
    there = sum(re.search(rb"(?:class|def) +%b\b" % part.encode(), content) is not None for part in parts)
    return there - len(stub.findall(content))


def _second_choice(other: _Candidate, best: _Candidate, parts: Collection[str]) -> str:
    name = other.name
    if other.rank < best.rank and _written(other, parts) < _written(best, parts):  # the name did not decide
        written = file_named(best.name)
        return f"{name}: was set aside because more is written in {written}. Hand in one file of each kind."
    same = "another file of the same name" if name == best.name else file_named(best.name)
    return f"{name}: was set aside because {same} fits the asked name better. Hand in one file of each kind."


def _condensed(refused: list[RefusedFile]) -> tuple[RefusedFile, ...]:
    """The refused files; many of one kind (a data set's images) become one line."""
    kinds = Counter(_kind(file) for file in refused)
    lines: list[RefusedFile] = []
    kinds_listed: set[str] = set()
    for file in refused:
        kind = _kind(file)
        if kinds[kind] <= MANY:
            lines.append(file)
        elif kind not in kinds_listed:
            kinds_listed.add(kind)
            count = f"{kinds[kind]} files"
            lines.append(
                RefusedFile(f"{count} ({kind})", f"{count} like {about_file(file.name, file.reason)}")
            )
    return tuple(lines)


def _kind(file: RefusedFile) -> str:
    return f"*{Path(file.name).suffix.lower()}"


def _name_notes(chosen: Iterable[_Candidate], submission: Submission) -> tuple[str, ...]:
    """A sentence for every accepted file whose name is not quite the one that was asked for."""
    asked_id = ANY_ID if submission.team else _asked_id(submission)
    notes = []
    for candidate in sorted(chosen, key=lambda candidate: candidate.name):
        match = name_match(candidate.name, candidate.stem)
        if match.closeness is not Closeness.EXACT:
            asked = candidate.stem.replace("{student_id}", asked_id) + Path(candidate.name).suffix.lower()
            notes.append(f"{file_named(candidate.name)} was taken as {asked}: use that name next time.")
    return tuple(notes)
