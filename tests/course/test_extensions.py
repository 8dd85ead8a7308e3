"""A CSV of extensions: what is wrong in it is told with its row and column."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from grader.course.extensions import by_known_id, read_extensions
from grader.domain.errors import UsageError

DUE = datetime(2026, 1, 31, 23, 59, tzinfo=timezone(timedelta(hours=3, minutes=30)))
GOOD = "2026-02-03T23:59:00+03:30"


def read(folder: Path, content: str | bytes) -> dict[str, datetime]:
    path = folder / "extensions.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_extensions(path, DUE)


def test_each_student_has_an_own_deadline(tmp_path: Path) -> None:
    found = read(tmp_path, f"student_id,deadline\n400101204,{GOOD}\n\n400101205,2026-02-01 12:00Z\n")
    assert found["400101204"].astimezone(UTC) == datetime(2026, 2, 3, 20, 29, tzinfo=UTC)
    assert found["400101205"] == datetime(2026, 2, 1, 12, tzinfo=UTC) and len(found) == 2


def test_what_a_spreadsheet_writes_is_read(tmp_path: Path) -> None:
    """A byte-order mark, semicolons, quotes, other columns and another order of them."""
    text = f'\ufeffDeadline;reason;Student_ID\r\n"{GOOD}";illness;400101204\r\n'
    assert set(read(tmp_path, text)) == {"400101204"}


def test_ids_are_those_of_the_results(tmp_path: Path) -> None:
    """In digits of any script; without zeros that a spreadsheet dropped; in small letters."""
    found = read(tmp_path, f"student_id,deadline\n۴۰۰۱۰۱۲۰۴,{GOOD}\n77,{GOOD}\ns9,{GOOD}\n8,{GOOD}\n")
    assert set(by_known_id(found, ["400101204", "0077", "S9"])) == {"400101204", "0077", "S9", "8"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "extensions.csv: row 1 must have the column 'student_id' once."),
        (f"student_id,due\n1,{GOOD}", "extensions.csv: row 1 must have the column 'deadline' once."),
        (f"student_id,deadline\n,{GOOD}", "extensions.csv: row 2, column 'student_id': is empty."),
        (
            f"student_id,deadline\n1,{GOOD}\n\n1,{GOOD}",
            "extensions.csv: row 4, column 'student_id': '1' is there twice.",
        ),
        (
            "student_id,deadline\n1,tomorrow",
            "extensions.csv: row 2, column 'deadline': 'tomorrow' is not a date and time.",
        ),
        ("student_id,deadline\n1", "extensions.csv: row 2, column 'deadline': '' is not a date and time."),
        (
            "student_id,deadline\n1,2026-02-03T23:59:00",
            "extensions.csv: row 2, column 'deadline': '2026-02-03T23:59:00' has no time zone.",
        ),
        (
            "student_id,deadline\n1,2026-01-30T23:59:00+03:30",
            "extensions.csv: row 2, column 'deadline': '2026-01-30T23:59:00+03:30' is before",
        ),
        (
            "student_id,deadline\n1,9999-12-31T23:59:00-05:00",
            "extensions.csv: row 2, column 'deadline': '9999-12-31T23:59:00-05:00' is too far away.",
        ),
        (b"\xff\xfe\x00", "extensions.csv: is not UTF-8 text."),
        (b"x" * 1_100_000, "extensions.csv: is larger than 1 MB."),
        ("student_id,deadline\n" + "x" * 200_000, "extensions.csv: is not a CSV file"),
        ('student_id,deadline\n"1,2026-02-03T23:59:00+03:30\n', "extensions.csv: is not a CSV file"),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_row_and_column(
    tmp_path: Path, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(sentence)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv: cannot be read"):
        read_extensions(tmp_path / "none.csv", None)
