"""Texts of the formats that the grader writes, without what they say about some persons.

In JSON, a record of such a person is dropped from its list or table, and other mentions become a word. In a
table, the person's rows are dropped. Everything else stays as it was written, byte for byte. It never
decides which files these are. Tests: `tests/files/test_forgotten_text.py`.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from grader.domain.mentions import Mentions

_TEAM = "team"  # all who handed something in together: one alone is no team
_COUNTED = ("matched", "superseded", "refused")  # counts in the account of a download, by the fate of files
_NOTE = "Data protection: persons were forgotten, and neither their files nor figures with them are counted."


def without_persons(document: Any, mentions: Mentions) -> Any:
    """Data as read from JSON, without records of persons and with a word in place of other mentions.

    A record is a mapping in a list, one of whose own values is an id or a name; a value in a list that is
    one; and an entry of a mapping whose key is one, or a path with one in it.
    """
    return _cleaned(document, mentions)


def json_without(text: str, mentions: Mentions) -> str:
    """A JSON document without persons, laid out as before.

    Raises:
        ValueError: It is no JSON.
    """
    document = json.loads(text)
    cleaned = without_persons(document, mentions)
    if cleaned == document:
        return text
    second_line = text.partition("\n")[2]
    indent = len(second_line) - len(second_line.lstrip(" ")) if "\n" in text.strip() else None
    made = json.dumps(cleaned, ensure_ascii=text.isascii(), indent=indent or None)
    return made + text[len(text.rstrip()) :]


def json_lines_without(text: str, mentions: Mentions) -> str:
    """Lines of JSON without those of persons; a line that is no JSON stays only if it mentions nobody."""
    kept = []
    for line in text.splitlines(keepends=True):
        try:
            document = json.loads(line)
        except ValueError:
            kept += [] if mentions.are_in(line) else [line]
            continue
        if not (isinstance(document, dict) and _is_about(document, mentions)):
            kept.append(json_without(line, mentions))
    return "".join(kept)


def _cleaned(value: Any, mentions: Mentions) -> Any:
    if isinstance(value, str):
        return mentions.replaced(value)
    if isinstance(value, list):
        return [_cleaned(item, mentions) for item in value if not _is_record_of(item, mentions)]
    if isinstance(value, dict):
        cleaned = {
            mentions.replaced(key): _cleaned(item, mentions)
            for key, item in value.items()
            if not _is_key_of(key, mentions)
        }
        if _TEAM in cleaned and cleaned[_TEAM] != value[_TEAM] and len(cleaned[_TEAM]) < 2:
            cleaned[_TEAM] = []
        _count_again(value, cleaned)
        return cleaned
    return value


def _is_record_of(item: Any, mentions: Mentions) -> bool:
    if isinstance(item, str):
        return mentions.are_whole(item)
    if isinstance(item, list):  # a pair of an id and what belongs to it
        return bool(item) and isinstance(item[0], str) and mentions.are_whole(item[0])
    return isinstance(item, dict) and _is_about(item, mentions)


def _is_about(record: dict[str, Any], mentions: Mentions) -> bool:
    return any(isinstance(value, str) and mentions.are_whole(value) for value in record.values())


def _is_key_of(key: str, mentions: Mentions) -> bool:
    return mentions.are_whole(key) or ("/" in key and any(map(mentions.are_whole, key.split("/"))))


def _count_again(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Correct the counts of a download's account whose files are fewer now, and say so in its notes."""
    files = before.get("files")
    if not all(isinstance(before.get(key), int) for key in _COUNTED) or not isinstance(files, list):
        return
    fewer = len(files) - len(after["files"])
    for fate in _COUNTED:
        after[fate] -= _files_of(files, fate) - _files_of(after["files"], fate)
    if fewer and isinstance(after.get("notes"), list) and _NOTE not in after["notes"]:
        after["notes"] = [*after["notes"], _NOTE]


def _files_of(files: list[Any], fate: str) -> int:
    return sum(file.get("count", 1) for file in files if isinstance(file, dict) and file.get("fate") == fate)


# --- tables ----------------------------------------------------------------------------------------------


_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
# the heads of columns with persons' names
_FULL = ("full name", "student", "student name")
_FIRST, _LAST = ("first name",), ("last name", "surname")


def decoded(content: bytes) -> tuple[str, str]:
    """(the text of a file, its encoding).

    Raises:
        ValueError: It is no text.
    """
    encoding = next((encoding for mark, encoding in _MARKS if content.startswith(mark)), "utf-8")
    text = content.decode(encoding)
    if "\0" in text:
        raise ValueError("no text")
    return text, encoding


def encoded(text: str, encoding: str, like: bytes) -> bytes:
    """A text in the encoding, and the order of bytes, of the file that it was read from."""
    if encoding == "utf-16":
        big = like.startswith(b"\xfe\xff")
        return like[:2] + text.encode("utf-16-be" if big else "utf-16-le")
    return text.encode(encoding)


def table_without(text: str, mentions: Mentions) -> str:
    """A table as CSV or TSV without the rows of persons; other rows that mention them do so by a word."""
    kept = []
    for row, lines in _rows(text):
        if not any(map(mentions.are_whole, row)):
            kept.append(mentions.replaced(lines))
    return "".join(kept)


@dataclass(frozen=True)
class TableNames:
    """The names of persons in tables.

    Attributes:
        theirs: In rows with an id of those who are mentioned.
        others: In rows with another id in a column of ids.
    """

    theirs: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    def __or__(self, more: "TableNames") -> "TableNames":
        return TableNames(self.theirs | more.theirs, self.others | more.others)


def names_in_table(text: str, mentions: Mentions) -> TableNames:
    """The names that a table gives the persons whose ids are in its rows, and those that it gives others."""
    by_id, anybody = Mentions(mentions.ids), Mentions(mentions.ids | mentions.others)
    table = [row for row, _ in _rows(text)]
    head, rows = [cell.strip().lower() for cell in table[0]] if table else [], table[1:]
    theirs = [row for row in rows if any(map(by_id.are_whole, row))]
    columns = {place for row in rows for place, cell in enumerate(row) if anybody.are_whole(cell)}
    others = [
        row
        for row in rows
        if row not in theirs and any(row[place].strip() for place in columns if place < len(row))
    ]
    found, elses = ({name for row in some for name in _names_of(head, row)} for some in (theirs, others))
    return TableNames(frozenset(name for name in found if not by_id.are_whole(name)), frozenset(elses))


def _names_of(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    by_head = dict(zip(head, row, strict=False))
    full = next((by_head[key] for key in _FULL if by_head.get(key)), "")
    first = next((by_head[key] for key in _FIRST if by_head.get(key)), "")
    last = next((by_head[key] for key in _LAST if by_head.get(key)), "")
    yield from (name.strip() for name in (full, f"{first} {last}") if name.strip())


def _rows(text: str) -> Iterator[tuple[list[str], str]]:
    """(cells, the lines that they are written in) of each row."""
    lines = text.splitlines(keepends=True)
    first = lines[0] if lines else ""
    separator = max(",;\t", key=first.count)
    reader = csv.reader(iter(lines), delimiter=separator)
    begin = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = [lines[begin]]
        yield row, "".join(lines[begin : reader.line_num])
        begin = reader.line_num


# --- compressed records ----------------------------------------------------------------------------------


def compressed_without(content: bytes, mentions: Mentions) -> bytes:
    """A compressed JSON document (the view of a handed-in file) without mentions of persons.

    Raises:
        ValueError: It is something else.
    """
    try:
        text = gzip.decompress(content).decode("utf-8")
    except (OSError, EOFError) as error:
        raise ValueError("no compressed document") from error
    document = json.loads(text)
    cleaned = _replaced(document, mentions)
    if cleaned == document:
        return content
    made = json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(made.encode("utf-8"), compresslevel=3, mtime=0)


def _replaced(value: Any, mentions: Mentions) -> Any:
    """Data whose structure is somebody else's work: nothing is dropped, only mentions become a word."""
    if isinstance(value, str):
        return mentions.replaced(value)
    if isinstance(value, list):
        return [_replaced(item, mentions) for item in value]
    if isinstance(value, dict):
        return {mentions.replaced(key): _replaced(item, mentions) for key, item in value.items()}
    return value
