"""Canvas's gradebook makes a round trip: only the assignment's column changes."""

import csv
import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.lms.canvas.canvas_files import GRADEBOOK
from grader.lms.export_format import Choices, Export
from tests import graded_results

ASSIGNMENT: Any = SimpleNamespace(id="lab8", title="Lab 8: ViT", maximum=100, review_required=False)
LINES = (
    'Student,ID,SIS User ID,SIS Login ID,Section,"Notes, ""private""",Quiz (771),Lab 8: ViT (772),'
    "Lab 8 (773),Current Score,Unposted Final Score",
    ",,,,,,,Manual Posting,,,",
    "    Points Possible,,,,,,10.00,100.00,100.00,(read only),(read only)",
    '"One, Student",901,400101201,s1@uni.example,Sec 1,"a ""b"", c",9.50,,88.00,91.2,90',
    '"Twø, استاد",902,,400101202@uni.example,Sec 1 and Sec 2,,10.00,64.50,,,',
    '"O\'Three, Student",903,,,"Sec\r\n1",=1+1,,EX,,,',
    '"Four, Student",904,400101204,,Sec 1,,,N/A,,,',
    '"Student, Test",905,,,Sec 1,,,,,,',
)
BOOK = ("\ufeff" + "\r\n".join(LINES) + "\r\n").encode()


def filled(results: list[Any], content: bytes, choices: Choices = graded_results.PLAIN) -> Export:
    return graded_results.export(GRADEBOOK, results, ("c.csv", content), choices, assignment=ASSIGNMENT)


@pytest.fixture
def results(a_result: Callable[..., Any]) -> list[Any]:
    return [
        a_result("400101201", 97.5),
        a_result("400101202", 64.5),
        a_result("othreestudent_903", 50.0),
        a_result("400101204", 40.0),
        a_result("400101207", 30.0),
    ]


def test_only_the_assignments_column_changes(results: list[Any]) -> None:
    export = filled(results, BOOK)
    assert export.content == BOOK.replace(b"9.50,,88.00", b"9.50,97.5,88.00")
    assert export.count == 2
    stays = "; its cell stays as it was"
    assert export.remarks == (
        "c.csv, row 6 (O'Three, Student): is excused in Canvas" + stays,
        "c.csv, row 7 (Four, Student): does not have this assignment in Canvas" + stays,
        "c.csv, row 8 (Student, Test): has no result" + stays,
        "400101207: has no row in c.csv",
    )


def test_importing_our_own_export_changes_nothing(results: list[Any]) -> None:
    once = filled(results, BOOK).content
    assert filled(results, once).content == once
    # gradebook_importer.rb: the header of the column is its title and number, the rows above are not students
    rows = list(csv.reader(io.StringIO(once.decode("utf-8-sig"), newline="")))
    assert rows[0][7] == "Lab 8: ViT (772)" and rows[2][0] == "    Points Possible"
    assert [row[7] for row in rows[3:]] == ["97.5", "64.50", "EX", "N/A", ""]


@pytest.mark.parametrize("column", ["Lab 8", "773", "Lab 8 (773)"])
def test_a_column_by_its_title_or_number(results: list[Any], column: str) -> None:
    export = filled(results[:1], BOOK, Choices(column))
    assert export.content == BOOK.replace(b"88.00,91.2", b"97.5,91.2")


def test_semicolons_and_decimal_commas_stay(a_result: Callable[..., Any]) -> None:
    book = "Student;ID;Section;Lab 8: ViT (772)\n    Points Possible;;;100,00\nOne;901;S;\nTwo;902;S;3,25\n"
    results = [a_result("one_901", 97.5), a_result("two_902", 3.25)]
    export = filled(results, book.encode())
    assert export.content.decode() == book.replace("901;S;", "901;S;97,5")


def test_first_and_last_names_in_two_columns(a_result: Callable[..., Any]) -> None:
    book = "LastName,FirstName,ID,SIS Login ID,Section,Lab 8: ViT (772)\n"
    book += "    Points Possible,,,,,100\nA,B,9,x7,S,\n"
    export = filled([a_result("x7", 5.0)], book.encode())
    assert export.content.decode() == book.replace("x7,S,", "x7,S,5")


def test_a_students_number_is_not_taken_for_canvass(a_result: Callable[..., Any]) -> None:
    # whose student number is what Canvas calls the first row
    book = BOOK.replace(b"902,,", b"902,901,")
    export = filled([a_result("901", 70.0)], book)
    assert export.content == book.replace(b",64.50,", b",70,") and export.count == 1


def test_a_name_without_latin_letters_leaves_its_number(a_result: Callable[..., Any]) -> None:
    export = filled([a_result("902", 70.0)], BOOK)
    assert export.content == BOOK.replace(b",64.50,", b",70,")


@pytest.mark.parametrize(
    ("old", "new", "choices", "sentence"),
    [
        (b"Section", b"Group", Choices(), "no column 'Section'"),
        (b"Student,ID", b"Name,Number", Choices(), "is not a gradebook of Canvas"),
        (b"Lab 8: ViT (772)", b"Lab 8: ViT", Choices(), "has no column 'Lab 8: ViT'.*'Quiz \\(771\\)'"),
        (b"(773)", b"(774)", Choices("Current Score"), "has no column 'Current Score'"),
        (b"Lab 8 (773)", b"Lab 8: ViT (773)", Choices(), "has 2 columns 'Lab 8: ViT'"),
        (b"10.00,100.00", b"10.00,60.00", Choices(), "the maximum is 60.00 there and 100 here"),
        (b"10.00,100.00", b"10.00,(read only)", Choices(), "Canvas does not read it"),
        (b",64.50,", b",64.51,", Choices(), "64.51 becomes 64.5, which is less"),
    ],
)
def test_what_canvas_would_misread_is_refused(
    results: list[Any], old: bytes, new: bytes, choices: Choices, sentence: str
) -> None:
    assert BOOK.count(old) == 1
    with pytest.raises(UsageError, match=sentence):
        filled(results, BOOK.replace(old, new), choices)


@pytest.mark.parametrize("choices", [Choices(), Choices(scale=True), Choices(scale=True, anyway=True)])
def test_no_grade_is_scaled_to_a_maximum_of_nothing(results: list[Any], choices: Choices) -> None:
    """It is what Canvas gives a new assignment: everybody would get 0."""
    book = BOOK.replace(b"10.00,100.00,", b"10.00,0.00,")
    with pytest.raises(UsageError, match=r"row 4 .* the maximum is 0\.00 there, and to that no grade"):
        filled(results, book, choices)


def test_grades_are_scaled_on_request(results: list[Any]) -> None:
    book = BOOK.replace(b"10.00,100.00", b"10.00,60.00").replace(b",64.50,", b",,")
    export = filled(results, book, Choices(scale=True))
    assert b"9.50,58.5,88.00" in export.content and b"10.00,38.7," in export.content
    without = book.replace(b"Points Possible", b"Points")
    with pytest.raises(UsageError, match="does not state its maximum"):
        filled(results, without, Choices(scale=True))
