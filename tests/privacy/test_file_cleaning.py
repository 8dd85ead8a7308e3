"""What becomes of files of each format."""

import io
import zipfile

import pytest
from openpyxl import Workbook, load_workbook

from grader.domain.mentions import Mentions
from grader.privacy.file_cleaning import FileFate, cleaned

HERS = Mentions(frozenset({"400101204"}), frozenset({"Jane Doe"}), frozenset({"400101205"}))


def archive(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, content in files.items():
            made.writestr(zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10)), content, method)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "fate"),
    [
        ("400101204/homework.py", b"", FileFate.GOES),
        ("Jane Doe_12/report.html", b"", FileFate.GOES),
        ("400101204_400101205.py", b"", FileFate.LEFT),
        ("notes.txt", b"about 400101204", FileFate.LEFT),
        ("notes.txt", b"about 400101205", FileFate.STAYS),
        ("broken.json", b"{400101204", FileFate.LEFT),
        ("broken.zip", b"PK 400101204", FileFate.LEFT),
        ("a.csv", b"400101204,1\n2,3\n", FileFate.CHANGES),
        ("report.html", b"<title>400101204</title>", FileFate.GOES),
    ],
)
def test_the_fate_of_a_file(name: str, content: bytes, fate: FileFate) -> None:
    assert cleaned(name, content, HERS).fate is fate


def test_zips_are_cleaned_within() -> None:
    inner = archive({"x.csv": b"400101204,1\n2,3\n"})
    before = archive({"a/400101204.txt": b"x", "b.csv": b"2,3\n", "c.zip": inner})
    found = cleaned("all.zip", before, HERS)
    assert found.fate is FileFate.CHANGES
    with zipfile.ZipFile(io.BytesIO(found.content)) as after:
        assert after.namelist() == ["b.csv", "c.zip"]
        assert after.getinfo("b.csv").date_time == (2024, 5, 6, 7, 8, 10)
        with zipfile.ZipFile(io.BytesIO(after.read("c.zip"))) as nested:
            assert nested.read("x.csv") == b"2,3\n"
    assert cleaned("all.zip", archive({"d.txt": b"400101204"}), HERS).fate is FileFate.LEFT


def test_a_damaged_zip_stops_nothing() -> None:
    content = bytearray(archive({"d.txt": b"x" * 99}, zipfile.ZIP_DEFLATED))
    at = content.find(b"d.txt") + len("d.txt")
    content[at : at + 4] = b"\xff" * 4
    assert cleaned("all.zip", bytes(content), HERS).fate is FileFate.STAYS


def test_a_damaged_workbook_stops_nothing() -> None:
    whole = io.BytesIO()
    Workbook().save(whole)
    with zipfile.ZipFile(whole) as before:
        files = {name: before.read(name) for name in before.namelist()}
    files["xl/worksheets/sheet1.xml"] = b"<worksheet>"
    assert cleaned("marks.xlsx", archive(files), HERS).fate is FileFate.STAYS


def test_rows_of_a_workbook_are_emptied_and_the_others_keep_their_places() -> None:
    book = Workbook()
    for row in (["student", "q1", "note"], ["400101204", 1, "x"], ["400101205", 2, "as Jane Doe"]):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    found = cleaned("marks.xlsx", buffer.getvalue(), HERS)
    rows = [
        [cell.value for cell in row] for row in load_workbook(io.BytesIO(found.content)).active.iter_rows()
    ]
    assert rows == [["student", "q1", "note"], [None] * 3, ["400101205", 2, "as forgotten"]]
