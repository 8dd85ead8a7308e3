"""`[files]` of `assignment.toml`: which files are handed in, and how they are called."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from grader.course.assignment_tables import FilesTable, OptionalTable, RequiredTable, SubmittedFileTable
from grader.course.contradictions import fault
from grader.course.toml_file import listing
from grader.domain.assignment import SubmittedFile
from grader.domain.submission import Role

# what intake unpacks: whatever is in them is handed in, and they are not
_ARCHIVES = {".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz"}
_CODE = {".py", ".ipynb"}


def file_stem(table: FilesTable) -> str:
    """How the names of all files begin.

    Raises:
        CourseError: It does not hold the student's id once, or what no name can hold.
    """
    return _stem(table.stem, "[files]: 'stem'")


def submitted_files(table: FilesTable) -> tuple[SubmittedFile, ...]:
    """The files that are handed in: those of the engine's roles first, then of the assignment's own.

    Raises:
        CourseError: A role, a suffix or a stem cannot be used, or two files cannot be told apart.
    """
    required, optional = _values(table.required), _values(table.optional)
    if Role.CODE in optional:
        raise fault(f"[files.optional] has '{Role.CODE}', which is always required. Move it there.")
    if both := [role for role in required if role in optional]:
        raise fault(f"[files]: '{both[0]}' is required and optional. Keep it in one of the two tables.")
    files = [_file(role, value, "[files.required]", required=True) for role, value in required.items()]
    files += [_file(role, value, "[files.optional]", required=False) for role, value in optional.items()]
    order = {role.value: place for place, role in enumerate(Role)}
    files.sort(key=lambda file: order.get(file.role, len(order)))
    for index, file in enumerate(files):
        for other in files[:index]:
            _require_told_apart(other, file)
    return tuple(files)


def _values(table: RequiredTable | OptionalTable) -> dict[str, Any]:
    values = {role.value: getattr(table, role.value, None) for role in Role}
    return {
        role: value for role, value in {**values, **(table.model_extra or {})}.items() if value is not None
    }


def _stem(stem: str, what: str) -> str:
    rest = stem.replace("{student_id}", "", 1)
    if rest == stem or re.search(r"[{}/\\]", rest):
        raise fault(f"{what} is '{stem}'. It must have {{student_id}} once, and no other braces or slashes.")
    return stem


def _require_role(role: str, where: str) -> None:
    known = [each.value for each in Role]
    if role in known:
        return
    if close := get_close_matches(role, known, n=1, cutoff=0.75):
        raise fault(f"{where} has '{role}', which is nearly '{close[0]}'. Write that, or call it otherwise.")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", role):
        raise fault(
            f"{where}: the role '{role}' is not a word of small letters such as 'metrics'. Rename it."
        )


def _file(role: str, value: Any, where: str, *, required: bool) -> SubmittedFile:
    _require_role(role, where)
    try:
        table = SubmittedFileTable.model_validate(
            {"suffixes": value} if isinstance(value, list) else value, strict=True
        )
    except ValidationError:
        raise fault(
            f"{where}: '{role}' is neither a list of suffixes nor a table with them. Write {role} = "
            f'[".csv"], or {role} = {{ suffixes = [".csv"], stem = "{{student_id}}_{role}" }}.'
        ) from None
    _require_suffixes(role, table.suffixes, where)
    stem = _stem(table.stem, f"{where}: 'stem' of '{role}'") if table.stem is not None else ""
    return SubmittedFile(role, tuple(table.suffixes), stem, required)


def _require_suffixes(role: str, suffixes: Sequence[str], where: str) -> None:
    for suffix in suffixes:
        if not re.fullmatch(r"\.[a-z0-9]+", suffix):
            raise fault(
                f"[files]: '{suffix}' of '{role}' is not a small-letter suffix such as '.py'. Fix it."
            )
        if suffix in _ARCHIVES:
            raise fault(f"{where}: '{suffix}' of '{role}' is an archive, which is unpacked. Ask for a file.")
        if suffix in _CODE and role != Role.CODE:
            raise fault(f"{where}: '{suffix}' of '{role}' is code. Ask for it as 'code'.")
    repeated = [suffix for suffix in suffixes if suffixes.count(suffix) > 1]
    if repeated:
        raise fault(f"[files]: the suffix '{repeated[0]}' is there twice. Keep it for one kind of file.")


def _require_told_apart(one: SubmittedFile, other: SubmittedFile) -> None:
    shared = [suffix for suffix in one.suffixes if suffix in other.suffixes]
    if shared and one.stem.casefold() == other.stem.casefold():
        raise fault(
            f"[files]: the suffix '{shared[0]}' is there twice. Keep it for one kind of file, or give "
            f"{listing([one.role, other.role])} a 'stem' each."
        )
