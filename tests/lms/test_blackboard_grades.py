"""Blackboard's grade center takes grades in one column, and keeps every other byte."""

import codecs
import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus, Ownership
from grader.domain.submission import Origin
from grader.lms.blackboard import BLACKBOARD
from grader.lms.export_format import Choices, Export
from grader.lms.roster import read_roster
from tests import graded_results

HEADER = (
    '"Last Name","First Name","Username","Student ID","Last Access","Availability",'
    '"Weighted Total [Total Pts: up to 0 Percentage] |101","Lab 7 [Total Pts: 100 Score] |102",'
    '"Lab 8 [Total Pts: 100 Score] |103_1","Lab 8 bonus [Total Pts: 5] |104","Mood [Total Pts: 0 Text] |105"'
)
ROWS = (
    '"One","Student","sone","400101201","2026-02-01 10:00:00","Yes","","88.00","Needs Grading","",""',
    '"Twø","استاد ""S""","s_two","","","Yes","","","50.00","","fine"',
    '"Three","A\r\nB",400101203,"","","Yes","","","Needs Grading(12.50)","",""',
    '"Four","Student","four.x@uni.example","400101204","","No","","","In Progress","",""',
    '"Five","Student","sfive","400101299","","Yes","","","","",""',
    '"One_PreviewUser","Student","teacher_previewuser","","","Yes","","","","",""',
)
BOOK = "\r\n".join([HEADER, *ROWS]) + "\r\n"
TABBED = BOOK.replace(",", "\t")


def commas(text: str = BOOK) -> bytes:
    return codecs.BOM_UTF8 + text.encode()


def tabs(text: str = TABBED) -> bytes:
    return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


def of(username: str, carries: str = "", lms: str = "Blackboard") -> Origin:
    return Origin(f"{lms}:{username}", username, f"blackboard-{username}", lms, username, carries=carries)


def filled(
    results: list[Any], content: bytes, choices: Choices = graded_results.PLAIN, *, partial: bool = False
) -> Export:
    (blackboard,) = BLACKBOARD.formats
    return graded_results.export(blackboard, results, ("gc.xls", content), choices, partial=partial)


@pytest.fixture
def results(a_result: Callable[..., Any]) -> list[Any]:
    return [
        a_result("400101201", 97.5),
        a_result("blackboard-s_two", 64.25, origin=of("s_two")),
        a_result("400101203", 70.0),
        a_result("400101204", 40.0),
        a_result("400101207", 30.0),
    ]


@pytest.mark.parametrize(("content", "part"), [(commas(), ","), (tabs(), "\t")])
def test_only_cells_of_the_column_change(results: list[Any], content: bytes, part: str) -> None:
    """Also the mark of the encoding, the ends of lines and the quotes stay."""
    export = filled(results, content)
    expected = (
        (BOOK if part == "," else TABBED)
        .replace(f'"88.00"{part}"Needs Grading"', f'"88.00"{part}"97.5"')
        .replace('"50.00"', '"64.25"')
        .replace('"Needs Grading(12.50)"', '"70"')
    )
    assert export.content == (commas(expected) if part == "," else tabs(expected))
    stays = "; its cell stays as it was"
    assert export.count == 3 and export.remarks == (
        "gc.xls, row 3 (s_two): 50.00 becomes 64.25",
        "gc.xls, row 5 (four.x@uni.example): holds 'In Progress', which is not a number" + stays,
        "gc.xls, row 6 (sfive): has no result" + stays,
        "400101207: has no row in gc.xls",
    )
    assert export.grades == {"400101201": 97.5, "blackboard-s_two": 64.25, "400101203": 70.0}


@pytest.mark.parametrize("content", [commas(), tabs(), BOOK.encode(), BOOK.replace("\r\n", "\n").encode()])
def test_filling_what_was_filled_changes_nothing(results: list[Any], content: bytes) -> None:
    once = filled(results, content).content
    assert once != content and filled(results, once).content == once
    assert filled(results[-1:], content).content == content, "nobody's grade changes no byte"


def test_blackboard_still_knows_the_columns_and_the_users(results: list[Any]) -> None:
    text = filled(results, tabs()).content.decode("utf-16")
    rows = list(csv.DictReader(io.StringIO(text, newline=""), dialect="excel-tab"))
    assert {row["Username"]: row["Lab 8 [Total Pts: 100 Score] |103_1"] for row in rows} == {
        "sone": "97.5",
        "s_two": "64.25",
        "400101203": "70",
        "four.x@uni.example": "In Progress",
        "sfive": "",
        "teacher_previewuser": "",
    }


@pytest.mark.parametrize("column", ["Lab 7", "lab 7 ", "102", "Lab 7 [Total Pts: 100 Score] |102"])
def test_a_column_by_its_title_or_number(results: list[Any], column: str) -> None:
    export = filled(results[:1], commas(), Choices(column))
    assert export.content == commas().replace(b'"88.00"', b'"97.5"')


@pytest.mark.parametrize(
    ("content", "column", "sentence"),
    [
        (commas(), "Lab 9", r"has no column 'Lab 9'\. Name one with --column; there are: 'Lab 7 \["),
        (commas(BOOK.replace("Lab 7 [", "Lab 8 [")), "", "has 2 columns 'Lab 8'"),
        (commas(), "Mood", "column 'Mood .*': holds no points"),
        (commas(BOOK.replace("100 Score] |103", "100 Percentage] |103")), "", "holds no points"),
        (commas(), "Weighted Total", "has no column 'Weighted Total'"),
        (commas(BOOK.replace('"Username"', '"User"')), "", "not a grade center .* no column Username"),
        (commas("Username,Lab 8\r\nsone,\r\n"), "", "not a grade center .* no column of grades"),
        (BOOK.encode("utf-16-le"), "", "is not UTF-8 text"),
        (b"Last Name Username", "", "is not a CSV table"),
        (b"PK\x03\x04\xff\xff", "", "is not UTF-8 text"),
    ],
)
def test_what_does_not_fit_is_refused(results: list[Any], content: bytes, column: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        filled(results, content, Choices(column))


def test_another_maximum_is_refused_or_scaled(results: list[Any]) -> None:
    content = commas(BOOK.replace("100 Score] |103", "20.0 Score] |103"))
    with pytest.raises(UsageError, match=r"row 2 \(sone\): the maximum is 20.0 there and 100 here.*--scale"):
        filled(results[:1], content)
    export = filled(results[:1], content, Choices(scale=True))
    assert b'"88.00","19.5"' in export.content
    unsaid = commas(BOOK.replace("[Total Pts: 100 Score] |103", "[?] |103"))
    assert filled(results[:1], unsaid).remarks[-1] == (
        "gc.xls does not state the points possible, so no maximum was compared."
    )


def test_a_maximum_in_another_language(results: list[Any]) -> None:
    """Only `Username` is asked for in English."""
    content = commas(BOOK.replace("Total Pts: 100 Score] |103", "Puntos totales: 100 Puntuación] |103"))
    assert b'"88.00","97.5"' in filled(results[:1], content).content


def test_a_grade_falls_only_when_that_is_meant(a_result: Callable[..., Any]) -> None:
    results = [a_result("x", 49.0, origin=of("s_two"))]
    with pytest.raises(UsageError, match=r"row 3 \(s_two\): 50.00 becomes 49, which is less"):
        filled(results, commas())
    assert b'"49"' in filled(results, commas(), Choices(anyway=True)).content


def test_the_username_of_an_upload_outranks_ids(a_result: Callable[..., Any]) -> None:
    """Of two whose files are named for each other, each gets the grade of what they sent."""
    results = [
        a_result("400101203", 64.5, origin=of("sone", "400101203")),
        a_result("400101201", 71.0, origin=of("400101203", "400101201")),
    ]
    content = filled(results, commas()).content.decode("utf-8-sig")
    assert '"88.00","64.5"' in content and '"71",""' in content


@pytest.mark.parametrize("student_id", ["sone", "SONE", "400101201"])
def test_a_result_without_blackboard_is_found_by_username_or_student_id(
    a_result: Callable[..., Any], student_id: str
) -> None:
    assert b'"88.00","97.5"' in filled([a_result(student_id, 97.5)], commas()).content


@pytest.mark.parametrize("student_id", ["One", "Yes", "Student", "2026-02-01_10_00_00"])
def test_names_and_dates_are_nobodys_id(a_result: Callable[..., Any], student_id: str) -> None:
    assert filled([a_result(student_id, 97.5)], commas()).content == commas()


def test_a_username_of_another_lms_is_none(a_result: Callable[..., Any]) -> None:
    assert filled([a_result("x", 97.5, origin=of("sone", lms="Moodle"))], commas()).content == commas()


def test_a_row_that_fits_two_is_named(a_result: Callable[..., Any]) -> None:
    results = [a_result("sone"), a_result("400101201", 70.0)]
    with pytest.raises(UsageError, match="row 2: fits 400101201 and sone"):
        filled(results, commas())


def test_what_is_unknown_or_nobodys_leaves_its_cell(a_result: Callable[..., Any]) -> None:
    evidence, score = a_result("blackboard-s_two", 64.5, origin=of("s_two"))
    held = evidence, replace(score, ownership=Ownership(held=True, decided=False, reason="Because."))
    refused = a_result("sfive", None, status=GradeStatus.REFUSED)
    results = [held, a_result("400101201", awaiting=True), refused]
    with pytest.raises(UsageError, match="awaits a person"):
        filled(results, commas())
    export = filled(results, commas(), partial=True)
    assert export.content == commas() and export.count == 0 and export.grades == {}
    told = "\n".join(export.remarks)
    assert "row 2 (sone): 400101201 has no grade (awaiting q6)" in told
    assert "row 6 (sfive): sfive has no grade (nothing in it could be graded)" in told
    assert "row 3 (s_two): nobody has said whose blackboard-s_two is" in told


@pytest.mark.parametrize("content", [commas(), tabs()])
def test_it_is_a_list_of_the_class(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gc.xls"
    path.write_bytes(content)
    roster = read_roster(path)
    assert list(roster.rows.values()) == ["400101201", "s_two", "400101203", "400101204", "400101299"]
    directory = roster.directory()
    assert roster.from_lms and directory.lms == "Blackboard"
    known = {number: (one.student_id, one.sure) for number, one in directory.students.items()}
    assert known["sone"] == ("400101201", True) and known["s_two"] == ("s_two", False)
    assert directory.students["sone"].person == "Student One"


def test_a_table_of_usernames_alone_is_a_list_of_the_courses_own(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("Username,Name\nsone,One\n")
    assert not read_roster(path).from_lms
