"""What becomes of one file when persons are forgotten: it stays, goes, or is written without them.

The format is told by the ending of the name. Only formats that the grader writes are written again; another
file that mentions a person is left to people, and never changed. It reads and returns bytes, and touches no
disk. Tests: `tests/privacy/test_file_cleaning.py`.
"""

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from grader.domain.mentions import Mentions
from grader.files.forgotten_text import (
    TableNames,
    decoded,
    encoded,
    json_lines_without,
    json_without,
    names_in_table,
    table_without,
)
from grader.files.workbooks import opened_workbook
from grader.privacy.page_records import is_about, page_without

DEEPEST = 3  # zips within zips
FIRST_PAGE = "index.html"  # of what a person is given


class FileFate(StrEnum):
    """What becomes of a file."""

    STAYS = "stays"  # it mentions none of the persons
    GOES = "goes"  # it is about one of them
    CHANGES = "changes"  # it is written without them
    LEFT = "left"  # it mentions one of them, and a person must decide


@dataclass(frozen=True)
class Cleaned:
    """What becomes of a file.

    Attributes:
        content: Of a file that changes.
        why: Why a file is left, as a clause.
    """

    fate: FileFate
    content: bytes = b""
    why: str = ""


STAYS, GOES = Cleaned(FileFate.STAYS), Cleaned(FileFate.GOES)


def cleaned(name: str, content: bytes, mentions: Mentions, depth: int = 0) -> Cleaned:
    """What becomes of a file.

    Args:
        name: Its path below the folder in which the grader keeps it, with `/` between the parts.
        depth: How many zips it is in.
    """
    if mentions.are_in_path(name):
        if mentions.names_others(name):
            return Cleaned(FileFate.LEFT, why="its name mentions somebody else as well")
        return GOES
    clean = _FORMATS.get(_ending(name))
    if clean is None:
        return _unknown(content, mentions)
    try:
        return clean(content, mentions, depth)
    except ValueError:
        return _unknown(content, mentions)


def names_in(name: str, content: bytes, mentions: Mentions) -> TableNames:
    """The names that a table gives the persons beside their ids, and those that it gives others."""
    if _ending(name) not in _TABLES:
        return TableNames()
    try:
        return names_in_table(decoded(content)[0], mentions)
    except ValueError:
        return TableNames()


def _ending(name: str) -> str:
    last = name.rpartition("/")[2]
    return f".{last.rpartition('.')[2].lower()}" if "." in last else ""


def _unknown(content: bytes, mentions: Mentions) -> Cleaned:
    if mentions.are_in_bytes(content):
        return Cleaned(FileFate.LEFT, why="it is in no format that the grader writes")
    return STAYS


def _text(change: Callable[[str, Mentions], str]) -> Callable[[bytes, Mentions, int], Cleaned]:
    def clean(content: bytes, mentions: Mentions, _: int) -> Cleaned:
        text, encoding = decoded(content)
        made = change(text, mentions)
        return STAYS if made == text else Cleaned(FileFate.CHANGES, encoded(made, encoding, content))

    return clean


def _page(content: bytes, mentions: Mentions, _: int) -> Cleaned:
    text, encoding = decoded(content)
    if is_about(text, mentions):
        return GOES
    made = page_without(text, mentions)
    return STAYS if made == text else Cleaned(FileFate.CHANGES, encoded(made, encoding, content))


def _zip(content: bytes, mentions: Mentions, depth: int) -> Cleaned:
    """A zip without the files that go, and with those that change; all others are copied.

    If its first page is about the person, it is what the person was given, and goes as a whole.
    """
    if depth == DEEPEST:
        return _unknown(content, mentions)
    buffer, changed, left = io.BytesIO(), False, ""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(buffer, "w") as after:
            if FIRST_PAGE in before.namelist() and is_about(decoded(before.read(FIRST_PAGE))[0], mentions):
                return GOES
            for entry in before.infolist():
                data = before.read(entry)
                found = cleaned(entry.filename.rstrip("/"), data, mentions, depth + 1)
                changed = changed or found.fate in (FileFate.GOES, FileFate.CHANGES)
                if found.fate is FileFate.LEFT:
                    left = f"{entry.filename} in it: {found.why}"
                if found.fate is not FileFate.GOES:
                    after.writestr(entry, found.content if found.fate is FileFate.CHANGES else data)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError("no zip that can be read") from error
    if left:
        return Cleaned(FileFate.LEFT, why=left)
    return Cleaned(FileFate.CHANGES, buffer.getvalue()) if changed else STAYS


def _workbook(content: bytes, mentions: Mentions, _: int) -> Cleaned:
    """A spreadsheet whose rows about the persons are emptied; rows keep their places, for formulas."""
    book, changed = opened_workbook(content), False
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            texts = [str(cell.value) for cell in row if cell.value is not None]
            links = [cell.hyperlink.target or "" for cell in row if cell.hyperlink is not None]
            about = any(map(mentions.are_whole, texts)) or any(map(mentions.are_in_path, links))
            for cell in row:
                if about and (cell.value is not None or cell.hyperlink is not None):
                    cell.value, cell.hyperlink, cell.comment = None, None, None
                    changed = True
                elif isinstance(cell.value, str) and mentions.are_in(cell.value):
                    cell.value = mentions.replaced(cell.value)
                    changed = True
    if not changed:
        return STAYS
    buffer = io.BytesIO()
    book.save(buffer)
    return Cleaned(FileFate.CHANGES, buffer.getvalue())


_TABLES = (".csv", ".tsv", ".xls")  # Blackboard calls a table with tabs so
_FORMATS: dict[str, Callable[[bytes, Mentions, int], Cleaned]] = {
    **dict.fromkeys(_TABLES, _text(table_without)),
    ".json": _text(json_without),
    ".pages": _text(json_without),
    ".jsonl": _text(json_lines_without),
    ".scores": _text(json_lines_without),
    ".html": _page,
    ".zip": _zip,
    ".xlsx": _workbook,
}
