"""CSV as students write it is read, and what cannot be is told in one sentence."""

import csv
import io
import math
from typing import Any

import pytest

from grader.kit import Mismatch, csv_rows

COLUMNS = {"epoch": int, "val_accuracy": float, "note": str, "best": bool}
ROWS = [
    {"epoch": 1, "val_accuracy": 0.5, "note": "first", "best": False},
    {"epoch": 2, "val_accuracy": 0.75, "note": "a, b", "best": True},
]


def written(**settings: Any) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(COLUMNS), **settings)
    writer.writeheader()
    writer.writerows(ROWS)
    return file.getvalue().encode()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_whatever_the_delimiter_and_the_ends_of_lines(delimiter: str, end: str) -> None:
    assert csv_rows(written(delimiter=delimiter, lineterminator=end), COLUMNS) == ROWS


@pytest.mark.parametrize(
    "content",
    [
        b'Note,Best,Val Accuracy,Epoch\nfirst,no,0.5,1\n"a, b",yes,.75,2\n',
        b" epoch , val-accuracy , note , best \n 1 , 0.5 , first , FALSE \n\n"
        b' 2 , 75e-2 ,"a, b", TRUE \n ,,, \n',
        b',epoch,valAccuracy,loss,note,best\n0,1.0,0.5,nan,first,0\n1,2.0,0.75,inf,"a, b",1\n',
        b"epoch;val_accuracy;note;best\n1;0,5;first;false\n2;0,75;a, b;true\n",
        '\ufeffepoch,val_accuracy,note,best\n1,0.5,first,0\n2,0.75,"a, b",1'.encode(),
        "epoch\tval_accuracy\tnote\tbest\n1\t0.5\tfirst\t0\n2\t0.75\ta, b\t1".encode("utf-16"),
    ],
    ids=["order", "spaces", "pandas", "decimal commas", "mark", "utf-16"],
)
def test_what_does_not_matter(content: bytes) -> None:
    assert csv_rows(content, COLUMNS) == ROWS


def test_types_are_those_that_were_asked_for() -> None:
    [row, _] = csv_rows(written(), COLUMNS)
    assert [type(value) for value in row.values()] == [int, float, str, bool]


def test_text_that_is_no_utf8_is_read() -> None:
    assert csv_rows("note\nGröße\n".encode("latin-1"), {"note": str}) == [{"note": "Größe"}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The metrics file is empty; its first line should name the columns."),
        (b" \n\n", "The metrics file is empty; its first line should name the columns."),
        (b"epoch,loss\n", "The metrics file has no rows below the names of its columns."),
        (b"1,0.5\n2,0.7\n", "The metrics file has no column “epoch”; its columns are “1”, “0.5”."),
        (
            b"epoch,loss,Epoch\n1,2,3\n",
            "The metrics file has 2 columns “epoch”; its columns are “epoch”, “loss”, “Epoch”.",
        ),
        (
            b"epoch,loss\n1,0.5\n2,low\n",
            "The metrics file, line 3, column “loss”: it is “low”; it should be a number.",
        ),
        (
            b"epoch,loss\n1.5,1\n",
            "The metrics file, line 2, column “epoch”: it is “1.5”; it should be a whole number.",
        ),
        (b"epoch,loss\n1\n", "The metrics file, line 2, column “loss”: it is empty; it should be a number."),
        (
            b"epoch,loss\n1,nan\n",
            "The metrics file, line 2, column “loss”: it is “nan”; it should be a number.",
        ),
        (
            b"epoch,loss\n1,1_0\n",
            "The metrics file, line 2, column “loss”: it is “1_0”; it should be a number.",
        ),
        (b"PK\x03\x04\x00\x00", "The metrics file is not text."),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(Mismatch) as told:
        csv_rows(content, {"epoch": int, "loss": float}, name="the metrics file")
    assert told.value.message == sentence


def test_numbers_may_be_missing_where_that_is_said() -> None:
    """In columns of numbers that need not be whole; what is no number is none there, either."""
    content = b"epoch,loss\n1,\n2,NaN\n3,0.5\n"
    found = csv_rows(content, {"epoch": int, "loss": float}, missing=True)
    assert [math.isnan(row["loss"]) for row in found] == [True, True, False]
    for wrong in (
        b"epoch,loss\n,0.5\n",
        b"epoch,loss\nnan,0.5\n",
        b"epoch,loss\n1,none\n",
        b"epoch,loss\n1,inf\n",
    ):
        with pytest.raises(Mismatch):
            csv_rows(wrong, {"epoch": int, "loss": float}, missing=True)


@pytest.mark.parametrize(
    "content",
    [
        b"epoch\n" + b"1" * 5000,
        b"epoch\n" + b'"' + b"x" * 200_000,
        b"epoch\n" + b"1\n" * 100_001,
        b"epoch" + b",x" * 1000 + b"\n1\n",
        b"epoch\n" + b"1\n" * 3_000_000,
        "epoch\n٣x".encode(),
        b"epoch\n1e999\n",
        b"\xff\xfe\x00",
    ],
    ids=["digits", "one cell", "rows", "columns", "bytes", "other digits", "infinite", "half a letter"],
)
def test_hostile_bytes_are_the_students_fault(content: bytes) -> None:
    with pytest.raises(Mismatch):
        csv_rows(content, {"epoch": int})


def test_a_type_that_is_none_is_the_checks_fault() -> None:
    with pytest.raises(ValueError, match="not list"):
        csv_rows(b"a\n1\n", {"a": list})
