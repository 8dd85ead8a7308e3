"""Reads a small CSV that people of the course write: rows by the names of columns.

Commas or semicolons, a byte-order mark, other columns and any order of them are accepted. Whatever is wrong
is one sentence with the file, the row as a spreadsheet counts, and the column. What the cells mean is not
known here.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import UsageError

MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class CsvRow:
    """A row.

    Attributes:
        file: The file's name, for messages.
        number: As a spreadsheet counts.
        cells: Column -> text, without surrounding space; empty where the row or the file lacks it.
    """

    file: str
    number: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def fault(self, column: str, sentence: str) -> UsageError:
        """The error about one of its cells."""
        return UsageError(f"{self.file}: row {self.number}, column '{column}': {sentence}")


def csv_rows_of(
    path: Path, columns: Sequence[str], what: str, *, optional: Sequence[str] = ()
) -> list[CsvRow]:
    """The rows of a CSV file that are not blank.

    Args:
        columns: Those that it must have; others are ignored.
        what: The file in messages: `the CSV of extensions`.
        optional: Those that it may have.

    Raises:
        UsageError: The file cannot be read, is no CSV, or lacks a column or has it twice.
    """
    text = _text(path, what)
    head = text.partition("\n")[0]
    separator = ";" if head.count(";") > head.count(",") else ","  # as spreadsheets write in many countries
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = []
    try:
        header = [cell.strip().casefold() for cell in next(lines, [])]
        for name in (*columns, *optional):
            if header.count(name) > 1 or (name in columns and name not in header):
                raise UsageError(
                    f"{path.name}: row 1 must have the column '{name}' once. Begin the file with "
                    f"{','.join(columns)}."
                )
        places = {name: header.index(name) for name in (*columns, *optional) if name in header}
        absent = dict.fromkeys(optional, "")
        for number, line in enumerate(lines, start=2):
            if any(cell.strip() for cell in line):
                cells = {name: line[at].strip() if at < len(line) else "" for name, at in places.items()}
                rows.append(CsvRow(path.name, number, {**absent, **cells}))
    except csv.Error as error:
        raise UsageError(f"{path.name}: is not a CSV file ({error}). Save it as CSV again.") from None
    return rows


def _text(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Give {what}.") from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path.name}: is larger than 1 MB. Give {what}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name}: is not UTF-8 text. Save it again as CSV in UTF-8.") from None
