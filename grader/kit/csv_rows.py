"""The rows of a CSV file that a student's code wrote or that was handed in: columns by name, typed."""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import Any

from grader.domain.formatting import quoted
from grader.kit.compared_results import Mismatch

MOST_BYTES = 5_000_000
MOST_ROWS = 100_000
MOST_COLUMNS = 500
MOST_DIGITS = 300  # of a whole number
DELIMITERS = ",;\t|"
SHOWN = 8  # columns that a message names
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
WORDS = {int: "a whole number", float: "a number", bool: "true or false"}

Row = dict[str, Any]


def csv_rows(
    content: bytes, columns: Mapping[str, type], *, name: str = "the file", missing: bool = False
) -> list[Row]:
    """The rows of a CSV file: the requested columns, each converted to its type.

    The delimiter may be a comma, a semicolon (then decimals may have a comma), a tab or a bar. Columns may
    come in any order, with others between them; case, spaces, `-` and `_` of their names do not matter, nor
    do spaces around values, blank lines, and how lines end. Text is UTF-8, UTF-16 with its mark, or Latin-1.

    Args:
        content: The file's content.
        columns: Name -> `str`, `int` (also written `3.0`), `float` (finite) or `bool` (true, yes, 1, ...).
        name: What messages call the file.
        missing: Numbers may be missing: an empty cell and `nan` are NaN in a column of `float`.

    Returns:
        A dictionary for each row, by the names asked for.

    Raises:
        Mismatch: It is not such a file: a sentence that says in which line and column, and what is there.
    """
    label = name[:1].upper() + name[1:]
    if len(content) > MOST_BYTES:
        raise Mismatch(f"{label} is larger than {MOST_BYTES // 1_000_000} MB.")
    lines = list(_lines(_text(content, label), label))
    if not lines:
        raise Mismatch(f"{label} is empty; its first line should name the columns.")
    (_, header), *rest = lines
    places = _places([cell.strip() for cell in header], columns, label)
    if not rest:
        raise Mismatch(f"{label} has no rows below the names of its columns.")
    return [
        {
            column: math.nan
            if missing and kind is float and cell.casefold() in ("", "nan")
            else _typed_value(cell, kind, f"{label}, line {number}, column {quoted(column)}")
            for column, kind in columns.items()
            for cell in [_cell(cells, places[column])]
        }
        for number, cells in rest
    ]


def _text(content: bytes, label: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", errors="replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("latin-1")
    if "\0" in text:
        raise Mismatch(f"{label} is not text.", hint="Write it with the csv module, or with pandas' to_csv.")
    return text


def _lines(text: str, label: str) -> Iterator[tuple[int, list[str]]]:
    """(line's number, cells) of the lines that are not blank."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), skipinitialspace=True)
    count = 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                count += 1
                if count > MOST_ROWS or len(cells) > MOST_COLUMNS:
                    raise Mismatch(f"{label} has more than {MOST_ROWS} rows, or {MOST_COLUMNS} columns.")
                yield reader.line_num, cells
    except csv.Error as error:
        raise Mismatch(f"{label} cannot be read as CSV at line {reader.line_num}.") from error


def _delimiter(text: str) -> str:
    """The delimiter that occurs most often between the names of the columns, outside quotes."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    outside = "".join(first.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


def _places(header: list[str], columns: Mapping[str, type], label: str) -> dict[str, int]:
    """The positions of the columns."""
    plain = [_plain(name) for name in header]
    for column in columns:
        count = plain.count(_plain(column))
        if count != 1:
            have = ", ".join(quoted(present) for present in header[:SHOWN])
            raise Mismatch(
                f"{label} has {'no column' if not count else f'{count} columns'} {quoted(column)}; "
                f"its columns are {have}."
            )
    return {column: plain.index(_plain(column)) for column in columns}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter not in " \t-_")


def _cell(cells: list[str], place: int) -> str:
    return cells[place].strip() if place < len(cells) else ""


def _typed_value(cell: str, kind: type, where: str) -> Any:
    """What a cell says, as a value of a type."""
    if kind is str:
        return cell
    value: Any = None
    if kind is bool:
        value = TRUTHS.get(cell.casefold())
    elif kind in (int, float) and len(cell) <= MOST_DIGITS and "_" not in cell:
        value = _number(cell, kind)
    elif kind not in WORDS:
        raise ValueError(f"columns are str, int, float or bool, not {kind.__name__}")
    if value is None:
        raise Mismatch(f"{where}: it is {quoted(cell) if cell else 'empty'}; it should be {WORDS[kind]}.")
    return value


def _number(cell: str, kind: type) -> int | float | None:
    """A finite number; a comma is a decimal comma if it cannot be the delimiter."""
    for text in (cell, cell.replace(",", ".") if cell.count(",") == 1 else cell):
        try:
            if kind is int and text.lstrip("+-").isdecimal():
                return int(text)
            value = float(text)
        except ValueError:
            continue
        if not math.isfinite(value) or (kind is int and not value.is_integer()):
            return None
        return int(value) if kind is int else value
    return None
