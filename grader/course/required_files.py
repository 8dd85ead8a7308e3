"""`[files]` of `assignment.toml`: which files are handed in, and how they are called."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from grader.course.assignment_tables import FilesTable, RequiredFileTable
from grader.course.contradictions import fault
from grader.course.toml_file import listing
from grader.domain.assignment import RequiredFile
from grader.domain.submission import Role

_WHERE = "[files.required]"
# what intake unpacks: whatever is in them is handed in, and they are not
_ARCHIVES = {".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz"}
_CODE = {".py", ".ipynb"}


def file_stem(table: FilesTable) -> str:
    """How the names of all files begin.

    Raises:
        CourseError: It does not hold the student's id once, or what no name can hold.
    """
    return _stem(table.stem, "[files]: 'stem'")


def required_files(table: FilesTable) -> tuple[RequiredFile, ...]:
    """The files that must be handed in: those of the engine's roles first, then of the assignment's own.

    Raises:
        CourseError: A role, a suffix or a stem cannot be used, or two files cannot be told apart.
    """
    values = {role.value: getattr(table.required, role.value) for role in Role}
    own = table.required.model_extra or {}
    for role in own:
        _require_role(role)
    files = [_required(role, value) for role, value in {**values, **own}.items() if value is not None]
    for index, file in enumerate(files):
        for other in files[:index]:
            _require_told_apart(other, file)
    return tuple(files)


def _stem(stem: str, what: str) -> str:
    rest = stem.replace("{student_id}", "", 1)
    if rest == stem or re.search(r"[{}/\\]", rest):
        raise fault(f"{what} is '{stem}'. It must have {{student_id}} once, and no other braces or slashes.")
    return stem


def _require_role(role: str) -> None:
    known = [each.value for each in Role]
    if close := get_close_matches(role, known, n=1, cutoff=0.75):
        raise fault(f"{_WHERE} has '{role}', which is nearly '{close[0]}'. Write that, or call it otherwise.")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", role):
        raise fault(
            f"{_WHERE}: the role '{role}' is not a word of small letters such as 'metrics'. Rename it."
        )


def _required(role: str, value: Any) -> RequiredFile:
    try:
        table = RequiredFileTable.model_validate(
            {"suffixes": value} if isinstance(value, list) else value, strict=True
        )
    except ValidationError:
        raise fault(
            f"{_WHERE}: '{role}' is neither a list of suffixes nor a table with them. Write {role} = "
            f'[".csv"], or {role} = {{ suffixes = [".csv"], stem = "{{student_id}}_{role}" }}.'
        ) from None
    _require_suffixes(role, table.suffixes)
    stem = _stem(table.stem, f"{_WHERE}: 'stem' of '{role}'") if table.stem is not None else ""
    return RequiredFile(role, tuple(table.suffixes), stem)


def _require_suffixes(role: str, suffixes: Sequence[str]) -> None:
    for suffix in suffixes:
        if not re.fullmatch(r"\.[a-z0-9]+", suffix):
            raise fault(
                f"[files]: '{suffix}' of '{role}' is not a small-letter suffix such as '.py'. Mend it."
            )
        if suffix in _ARCHIVES:
            raise fault(f"{_WHERE}: '{suffix}' of '{role}' is an archive, which is unpacked. Ask for a file.")
        if suffix in _CODE and role != Role.CODE:
            raise fault(f"{_WHERE}: '{suffix}' of '{role}' is code. Ask for it as 'code'.")
    repeated = [suffix for suffix in suffixes if suffixes.count(suffix) > 1]
    if repeated:
        raise fault(f"[files]: the suffix '{repeated[0]}' is there twice. Keep it for one kind of file.")


def _require_told_apart(one: RequiredFile, other: RequiredFile) -> None:
    shared = [suffix for suffix in one.suffixes if suffix in other.suffixes]
    if shared and one.stem.casefold() == other.stem.casefold():
        raise fault(
            f"[files]: the suffix '{shared[0]}' is there twice. Keep it for one kind of file, or give "
            f"{listing([one.role, other.role])} a 'stem' each."
        )
