"""A file of somebody else's stays as it is, byte for byte, around the cells that are replaced."""

import codecs
import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.domain.errors import UsageError
from grader.files.csv_text import csv_text

ODD = 'Name, Grade ,"Notes ""x"""\r\n"Åsa, ""Q"" محمد",7,"two\r\nlines"\r"plain" \n\n,,\n'.replace(
    '"plain" ', "a,b,c"
)


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("text", [ODD, ODD.rstrip("\n"), ODD + "last,1,2", "a,b", "a;b\r\n1;2\r\n", "a\tb\n"])
def test_nothing_changed_is_the_same_file(bom: bytes, text: str) -> None:
    content = bom + text.encode()
    assert csv_text("x.csv", content).with_cells({}) == content


def test_utf_16_stays_utf_16() -> None:
    content = codecs.BOM_UTF16_LE + "Name\tGrade\r\nÅ\t\r\n".encode("utf-16-le")
    changed = csv_text("x.csv", content).with_cells({(1, 1): "7"})
    assert changed == codecs.BOM_UTF16_LE + "Name\tGrade\r\nÅ\t7\r\n".encode("utf-16-le")


def test_only_the_cell_changes_and_its_quotes_stay() -> None:
    table = csv_text("x.csv", ODD.encode())
    assert table.header == ("Name", "Grade", 'Notes "x"')
    assert table.cell(1, 0) == 'Åsa, "Q" محمد' and table.cell(1, 2) == "two\r\nlines"
    assert table.with_cells({(1, 1): "64,5"}).decode() == ODD.replace(",7,", ',"64,5",')
    quoted = csv_text("x.csv", b'a,b\n"1","2"\n').with_cells({(1, 1): "3"})
    assert quoted == b'a,b\n"1","3"\n'


def test_a_title_with_other_delimiters_does_not_deceive() -> None:
    assert csv_text("x.csv", b"Student,ID,A; B; C; D; E\n").header == ("Student", "ID", "A; B; C; D; E")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"Name,Grade\n\xe5sa,7\n", "is not UTF-8 text"),
        (b"", "is not a CSV table"),
        (b"PK\x03\x04,\0", "is not a CSV table"),
        (b'a,b\n"open,7\n', "row 2: a quotation mark has no closing one"),
        (b'a,b\n"a"x,7\n', "row 2: a quotation mark has no closing one"),
    ],
)
def test_what_cannot_be_kept_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        csv_text("x.csv", content)


def test_a_short_row_is_not_filled() -> None:
    with pytest.raises(UsageError, match="row 2: has 2 cells, the first row 3"):
        csv_text("x.csv", b"a,b,c\n1,2\n").with_cells({(1, 1): "7"})


CELL = st.text(st.sampled_from('ab",;\n é7'), max_size=6)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"])
)
def test_cells_are_read_as_pythons_own_reader_reads_them(rows: list[list[str]], end: str) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=end)
    writer.writerows([["x", "y", "z"], *rows])
    content = buffer.getvalue().encode()
    table = csv_text("x.csv", content)
    assert [[cell.text for cell in row] for row in table.rows] == [["x", "y", "z"], *rows]
    assert table.with_cells({}) == content
    changed = csv_text("x.csv", table.with_cells({(len(rows), 1): 'n"w'}))
    expected = [*rows[:-1], [rows[-1][0], 'n"w', rows[-1][2]]]
    assert [[cell.text for cell in row] for row in changed.rows[1:]] == expected
