"""Reads a CSV file of extensions: single students' own deadlines."""

import csv
import io
from datetime import datetime
from pathlib import Path

from grader.domain.errors import UsageError
from grader.domain.formatting import zone_problem

COLUMNS = ("student_id", "deadline")
MOST_BYTES = 1_000_000
EXAMPLE = "2026-01-31T23:59:00+03:30"


def read_extensions(path: Path, deadline: datetime | None) -> dict[str, datetime]:
    """Each student's own deadline, by the student's id.

    Args:
        path: A CSV file with the columns `student_id` and `deadline`; others are ignored.
        deadline: Everybody else's.

    Raises:
        UsageError: The file cannot be read or has a bad value; the message names its row (as a spreadsheet
            counts) and column.
    """
    text = _text(path)
    head = text.partition("\n")[0]
    separator = ";" if head.count(";") > head.count(",") else ","  # as spreadsheets write in many countries
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    deadlines: dict[str, datetime] = {}
    try:
        header = [cell.strip().casefold() for cell in next(rows, [])]
        for name in COLUMNS:
            if header.count(name) != 1:
                raise UsageError(
                    f"{path.name}: row 1 must have the column '{name}' once. Begin the file with "
                    f"{','.join(COLUMNS)}."
                )
        columns = [header.index(name) for name in COLUMNS]
        for number, row in enumerate(rows, start=2):
            if not any(cell.strip() for cell in row):
                continue
            student_id, moment = (row[column].strip() if column < len(row) else "" for column in columns)
            if not student_id:
                raise _fault(path, number, "student_id", "is empty. Write whose extension it is.")
            if student_id in deadlines:
                raise _fault(path, number, "student_id", f"'{student_id}' is there twice. Remove one row.")
            deadlines[student_id] = _moment(path, number, moment, deadline)
    except csv.Error as error:
        raise UsageError(f"{path.name}: is not a CSV file ({error}). Save it as CSV again.") from None
    return deadlines


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). Give the CSV of extensions.") from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path.name}: is larger than 1 MB. Give the CSV of extensions.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path.name}: is not UTF-8 text. Save it again as CSV in UTF-8.") from None


def _moment(path: Path, number: int, text: str, deadline: datetime | None) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _fault(
            path, number, "deadline", f"'{text[:40]}' is not a date and time. Write it as in {EXAMPLE}."
        ) from None
    if problem := zone_problem(moment, f"'{text[:40]}'"):
        raise _fault(path, number, "deadline", problem)
    if deadline is not None and moment < deadline:
        raise _fault(
            path,
            number,
            "deadline",
            f"'{text[:40]}' is before everybody's deadline ({deadline.isoformat()}). Correct it.",
        )
    return moment


def _fault(path: Path, number: int, column: str, sentence: str) -> UsageError:
    return UsageError(f"{path.name}: row {number}, column '{column}': {sentence}")
