"""Sheets as files: what is written is read back, whatever a comment holds and whichever program saved it."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from grader.decisions.mark_entries import COLUMNS, Mark, mark_at_export
from grader.decisions.sheet_files import read_sheet, write_sheet
from grader.domain.errors import UsageError
from grader.files.file_names import FORMULA, guarded, unguarded

ATTACK = '=HYPERLINK("http://x","y")'


def test_csv_is_what_spreadsheets_take_for_utf8(rows_with, tmp_path):
    write_sheet(tmp_path / "m.csv", rows_with())
    content = (tmp_path / "m.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    [header, first, *_] = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    assert tuple(header) == COLUMNS
    cells = dict(zip(header, first, strict=True))
    assert (cells["student_id"], cells["item"], cells["max"], cells["points"]) == (
        "400101201", "report_quality", "5", "",
    )  # fmt: skip
    assert cells["measured_accuracy"] == "70.0 %"


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_sheet_names_people_only_when_it_is_asked_to(rows_with, suffix, tmp_path):
    path = tmp_path / f"m{suffix}"
    write_sheet(path, rows_with())
    assert "name" not in read_sheet(path)[0].cells
    write_sheet(path, rows_with(), {"400101201": "=Alpha One"})
    rows = read_sheet(path)
    assert rows[0].cells["name"] == "'=Alpha One" and rows[-1].cells["name"] == ""
    assert [row.cells["exported"] for row in rows] == [row.exported for row in rows_with()]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_cells_from_students_are_never_formulas(graded_class, rows_with, class_evidence, suffix, tmp_path):
    from dataclasses import replace

    row = rows_with()[0]
    path = tmp_path / f"m{suffix}"
    told = {**row.evidence, "hyperparameters": ATTACK, "note": "+1"}
    write_sheet(path, [replace(row, evidence=told, answers="students/1/answers.html")])
    if suffix == ".csv":
        assert "\"'=HYPERLINK" in path.read_text("utf-8-sig")
    else:
        sheet = load_workbook(path).active
        cell = sheet.cell(2, COLUMNS.index("hyperparameters") + 1)
        assert (cell.data_type, cell.value) == ("s", "'" + ATTACK)
        assert sheet.cell(2, COLUMNS.index("report") + 1).hyperlink.target.endswith("report.html")
        link = sheet.cell(2, COLUMNS.index("answers") + 1).hyperlink
        assert link.target == "students/1/answers.html"
        assert sheet.cell(2, COLUMNS.index("max") + 1).value == 5


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(
    "comment", [ATTACK, "'quoted", "two\nlines; and, “more”", "-", "سلام", "@x", "'=1", "=1\n=2"]
)
def test_comments_come_back_exactly(rows_with, mark, tmp_path, suffix, comment):
    rows = rows_with(mark("400101201", "q6", 2.5, comment=comment, remarks=(("no_locality", "x"),)))
    write_sheet(tmp_path / f"m{suffix}", rows)
    [read] = [row for row in read_sheet(tmp_path / f"m{suffix}") if row.cells["marked_by"]]
    assert unguarded(read.cells["comment"]) == comment
    assert (read.cells["points"], read.cells["comment_ids"]) == ("2.5", "no_locality")
    assert mark_at_export(read.cells["exported"]) == (Mark(2.5, comment, ("no_locality",)).token, 1)
    assert read.place == f"m{suffix}, row 3"


@settings(deadline=None, max_examples=200, derandomize=True, database=None)
@given(st.text() | st.text(alphabet="'=+-@\t\r\nx"))
def test_guarding_can_be_undone(text):
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(FORMULA)


@pytest.mark.parametrize(
    "text", ["student_id;item;points\n1;q6;2,5\n", "student_id\titem\tpoints\n1\tq6\t2,5\n"]
)
def test_other_programs_separate_otherwise(tmp_path, text):
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (tmp_path / "m.csv").write_bytes(text.encode(encoding))
        [row] = read_sheet(tmp_path / "m.csv")
        assert row.cells == {"student_id": "1", "item": "q6", "points": "2,5"}


def test_a_spreadsheets_numbers_are_ids_and_points(tmp_path):
    book = Workbook()
    book.active.append(["Student_ID", "item", "points", None])
    book.active.append([])
    book.active.append([400101201, "q6", 2.5])
    book.active.append([400101202.0, "q6", 3.0])
    book.save(tmp_path / "m.xlsx")
    rows = read_sheet(tmp_path / "m.xlsx")
    assert [(row.place, row.cells["student_id"], row.cells["points"]) for row in rows] == [
        ("m.xlsx, row 3", "400101201", "2.5"),
        ("m.xlsx, row 4", "400101202", "3"),
    ]


def damaged_workbook(path: Path, damage: str) -> Path:
    """A workbook in whose only sheet the XML is cut or empty, or whose bytes are squeezed wrongly."""
    whole, buffer = io.BytesIO(), io.BytesIO()
    book = Workbook()
    book.active.append(["student_id", "item", "points"])
    book.save(whole)
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as after:
        for entry in before.infolist():
            data = before.read(entry)
            if entry.filename.endswith("sheet1.xml"):
                data = {"cut": data[:-40], "empty": b"", "squeezed": data}[damage]
                at = buffer.tell() + 30 + len(entry.filename)
            after.writestr(entry.filename, data)
    content = bytearray(buffer.getvalue())
    if damage == "squeezed":
        content[at : at + 20] = b"\xff" * 20
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("m.csv", b"student_id,item\n", "m.csv, row 1: the column 'points' is missing. Keep the first row"),
        ("m.csv", b"student_id,item,points,item\n", "m.csv, row 1: the column 'item' is twice."),
        ("m.csv", b"", "m.csv, row 1: the column 'student_id' is missing."),
        ("m.csv", b"student_id,\xff\n", "m.csv is not UTF-8 text. Save it as `CSV UTF-8`, or as .xlsx."),
        ("m.xlsx", b"PK nonsense", "m.xlsx is not a spreadsheet that can be read. Save it again as .xlsx."),
        ("m.ods", b"", "m.ods: only .xlsx and .csv are read. Save it as .xlsx in your spreadsheet program"),
        ("m.txt", b"", "m.txt: a sheet ends with .csv or .xlsx. Give it such a name."),
    ],
)
def test_what_is_no_sheet_is_told(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_sheet(tmp_path / name)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("damage", ["cut", "empty", "squeezed"])
def test_a_damaged_spreadsheet_is_told(tmp_path, damage):
    with pytest.raises(UsageError, match=r"m\.xlsx is not a spreadsheet that can be read\. Save it again"):
        read_sheet(damaged_workbook(tmp_path / "m.xlsx", damage))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_sheet(tmp_path / "m.csv")
    with pytest.raises(UsageError, match="is not a folder"):
        write_sheet(tmp_path / "no" / "m.csv", [])
