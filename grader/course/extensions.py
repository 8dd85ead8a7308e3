"""Reads a CSV file of extensions: single students' own deadlines."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from grader.course.csv_table import CsvRow, csv_rows_of
from grader.course.known_ids import KnownIds
from grader.domain.formatting import moment_problem
from grader.files.file_names import plain, sanitized

COLUMNS = ("student_id", "deadline")
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
    deadlines: dict[str, datetime] = {}
    for row in csv_rows_of(path, COLUMNS, "the CSV of extensions"):
        if not row["student_id"]:
            raise row.fault("student_id", "is empty. Write whose extension it is.")
        student_id = sanitized(plain(row["student_id"]))
        if student_id in deadlines:
            raise row.fault("student_id", f"'{student_id}' is there twice. Remove one row.")
        deadlines[student_id] = _moment(row, deadline)
    return deadlines


def by_known_id(deadlines: Mapping[str, datetime], known: Iterable[str]) -> dict[str, datetime]:
    """The deadlines by the ids under which results are listed: see `KnownIds`."""
    ids = KnownIds(known).of_table(deadlines)
    return {ids[student_id]: deadline for student_id, deadline in deadlines.items()}


def _moment(row: CsvRow, deadline: datetime | None) -> datetime:
    text = row["deadline"]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise row.fault(
            "deadline", f"'{text[:40]}' is not a date and time. Write it as in {EXAMPLE}."
        ) from None
    if problem := moment_problem(moment, f"'{text[:40]}'"):
        raise row.fault("deadline", problem)
    if deadline is not None and moment < deadline:
        raise row.fault(
            "deadline",
            f"'{text[:40]}' is before everybody's deadline ({deadline.isoformat()}). Correct it.",
        )
    return moment
