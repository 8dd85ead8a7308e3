"""Which of the files in a student's folder are meant to be handed in, for `grader pack`.

Names decide, then what is inside. `grader check` does not ask here: it is given its file, or takes the usual
one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.assignment_files import AskedFile
from grader.domain.errors import UsageError
from grader.domain.submission import Role
from grader.files.file_names import sanitized
from grader.files.known_folders import HOMEWORK
from grader.intake.file_roles import STUBS
from grader.intake.naming import CONFIGURATION, Closeness, is_clutter, own_match
from grader.students.own_machine import file_content

OPTIONS: dict[str, str] = {Role.CODE: "--code", Role.CHECKPOINT: "--checkpoint", Role.REPORT: "--report"}


@dataclass(frozen=True)
class RoleCandidate:
    """The file that is meant for a role, or why there is none.

    Attributes:
        path: The file; None when none was found, or several that could be meant.
        problem: What to do about it, when there is no file.
        notes: What else the student should know, such as a second file that was not taken.
    """

    path: Path | None
    problem: str = ""
    notes: tuple[str, ...] = ()


def checked_id(student_id: str) -> str:
    """The id, if it can be part of a file's name.

    Raises:
        UsageError: It cannot.
    """
    if sanitized(student_id) != student_id:
        raise UsageError(
            f"--id {student_id}: a student id has letters, digits, `-` and `_` only. "
            "Give it as your course writes it."
        )
    return student_id


def inferred_id(folder: Path, assignment: Assignment) -> str:
    """The student id in the names of files that have the right names already.

    Raises:
        UsageError: There are none, or of several students.
    """
    ids = named_ids(folder, assignment)
    if len(ids) == 1:
        return ids.pop()
    named_in_files = "" if not ids else f" (the names of the files here say {' and '.join(sorted(ids))})"
    raise UsageError(
        f"Whose work is it?{named_in_files} Say so: grader pack --id STUDENT_ID, as in --id 400101204"
    )


def named_ids(folder: Path, assignment: Assignment) -> set[str]:
    """The student ids in the names of files that have the right names already."""
    matches = [own_match(path.name, assignment) for path in _files(folder)]
    return {match.student_id for match in matches if match.student_id and match.closeness is Closeness.EXACT}


def candidate(
    folder: Path, asked: AskedFile, student_id: str, provided: Collection[str] = ()
) -> RoleCandidate:
    """The file in the folder that is meant for a role.

    A file with the required name comes first, then one with a usual name, then the only one of its kind.

    Args:
        folder: Where the student's files are.
        asked: What is wanted.
        student_id: Whose it is.
        provided: Names of files that the course provides; they are nobody's work.
    """
    suffixes = asked.suffixes
    files = [
        path
        for path in _files(folder)
        if path.suffix.lower() in suffixes
        and asked.has_name_part(path.name)
        and path.name not in (*provided, "README.md")  # what the course hands out
    ]
    exact = [path for path in files if path.name == asked.name(student_id, path.suffix)]
    if asked.role == Role.CODE:
        usual = [path for path in files if path.name in HOMEWORK]
        possible = [
            path for path in files if not path.name.startswith("test_") and path.name not in CONFIGURATION
        ]
        return _code_candidate([*exact, *usual] or possible, asked, student_id)
    recognized = [path for path in files if path.stem in (student_id, asked.role)]
    for group in (exact, recognized, files):
        if len(group) == 1:
            return RoleCandidate(group[0])
    return _no_candidate(files, asked, student_id)


def _code_candidate(files: Sequence[Path], asked: AskedFile, student_id: str) -> RoleCandidate:
    """Of several files, the one with the fewest stubs left: the course hands out a script and a notebook."""
    if not files:
        return _no_candidate(files, asked, student_id)
    by_stubs = sorted(files, key=stubs)
    best, less_written = by_stubs[0], by_stubs[1:]
    if (
        less_written
        and stubs(less_written[0]) == stubs(best)
        and less_written[0].read_bytes() != best.read_bytes()
    ):
        tied = [path for path in by_stubs if stubs(path) == stubs(best)]
        return _no_candidate(tied, asked, student_id)
    notes = [
        f"{path.name} was left out: {stubs(path)} of its parts are not written, {stubs(best)} of {best.name}."
        for path in less_written
        if stubs(path) != stubs(best)
    ]
    return RoleCandidate(best, notes=tuple(notes))


def stubs(path: Path) -> int:
    """How many parts of a file still raise `NotImplementedError("TODO ...")`.

    Raises:
        UsageError: It cannot be read.
    """
    pattern = STUBS.get(path.suffix.lower())
    return len(pattern.findall(file_content(path))) if pattern else 0


def _no_candidate(files: Sequence[Path], asked: AskedFile, student_id: str) -> RoleCandidate:
    option = f"{OPTIONS[asked.role]} FILE" if asked.role in OPTIONS else f"--file {asked.role}=FILE"
    if files:
        names = " or ".join(path.name for path in files[:6])
        return RoleCandidate(None, f"Which one is meant, {names}? Say so: {option}")
    advice: dict[str, str] = {
        Role.CODE: f"Put your homework there, or name it: {option}",
        Role.CHECKPOINT: (
            "Train, and save the weights of the model that you hand in: "
            f'torch.save(model.state_dict(), "{asked.name(student_id)}")'
        ),
        Role.REPORT: f"Export your report as PDF into this folder, or name it: {option}",
    }
    named = f" with `{asked.name_part}` in its name" if asked.name_part else ""
    usual = f"Save your {asked.role} as {asked.name(student_id)} in this folder, or name it: {option}"
    instruction = advice.get(asked.role, usual)
    return RoleCandidate(None, f"There is no {' or '.join(asked.suffixes)} file{named}. {instruction}")


def _files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".") and not is_clutter(Path(path.name))
    ]
