"""Moodle's worksheet and gradebook take grades, and keep all else."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus, Ownership
from grader.domain.submission import Origin
from grader.lms.export_format import Choices, Export
from grader.lms.moodle.grade_tables import GRADEBOOK, WORKSHEET
from tests import graded_results

HEADER = (
    'Identifier,"Full name","ID number","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"'
)
ROWS = (
    '"Participant 11","Student 17",400101201,s17@uni.example,"Submitted for grading",,100.00,Yes,'
    '"Friday, 30 January 2026, 5:00 PM",-,"<p>""fine""</p>"',
    '"Participant 12","Ståle, ""S"" دانشجو","",400101202@uni.example,Submitted,50.00,100.00,Yes,-,"x",',
    '"Participant 13","Student 19","","",Submitted,"",100.00,Yes,-,-,"two\nlines"',
    '"Participant 14","Student 20",400101299,"",No submission,,100.00,Yes,-,-,',
    '"Participant 15","Student 21",400101205,"",Submitted,,100.00,No,-,-,',
)
SHEET = "\ufeff" + "\r\n".join([HEADER, *ROWS]) + "\r\n"


def worksheet(
    results: list[Any], content: bytes, choices: Choices = graded_results.PLAIN, *, partial: bool = False
) -> Export:
    return graded_results.export(WORKSHEET, results, ("g.csv", content), choices, partial=partial)


def gradebook(
    results: list[Any], file: tuple[str, bytes] | None, choices: Choices = graded_results.PLAIN
) -> Export:
    return graded_results.export(GRADEBOOK, results, file, choices)


@pytest.fixture
def results(a_result: Callable[..., Any]) -> list[Any]:
    return [
        a_result("400101201", 64.5, after=62.5),
        a_result("400101202", 70.0),
        a_result("Student_19_13", 7.25),
        a_result("400101205", 80.0),
        a_result("400101298", 1.0),
    ]


def test_the_worksheet_is_filled_and_the_rest_stays(results: list[Any]) -> None:
    export = worksheet(results, SHEET.encode())
    expected = (
        SHEET.replace('grading",,100', 'grading",62.5,100')
        .replace(",50.00,", ",70,")
        .replace('Submitted,"",', 'Submitted,"7.25",')
    )
    assert export.content.decode() == expected
    assert export.count == 3
    assert export.remarks == (
        "g.csv, row 3 (Participant 12): 50.00 becomes 70",
        "g.csv, row 6 (Participant 15): Moodle lets nobody change this grade; its cell stays as it was",
        "g.csv, row 5 (Participant 14): has no result; its cell stays as it was",
        "400101298: has no row in g.csv",
    )


def test_filling_what_was_filled_changes_nothing(results: list[Any]) -> None:
    once = worksheet(results, SHEET.encode()).content
    twice = worksheet(results, once)
    assert twice.content == once and twice.count == 3


def test_moodle_still_takes_it(results: list[Any]) -> None:
    # the three columns that importgradeslib.php asks for, and the number at the end of the identifier
    content = worksheet(results, SHEET.encode()).content
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert {"Identifier", "Grade", "Last modified (grade)"} <= rows[0].keys()
    assert {row["Identifier"].rpartition(" ")[2]: row["Grade"] for row in rows} == {
        "11": "62.5",
        "12": "70",
        "13": "7.25",
        "14": "",
        "15": "",
    }
    assert all(0 <= float(row["Grade"] or 0) <= float(row["Maximum Grade"]) for row in rows)


def test_a_grade_of_nobody_knows_leaves_the_cell(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101202", None, status=GradeStatus.REFUSED), a_result("400101201", awaiting=True)]
    export = worksheet(results, SHEET.encode(), partial=True)
    assert export.content.decode() == SHEET and export.count == 0
    assert "row 2 (Participant 11): 400101201 has no grade (awaiting q6)" in export.remarks[0]
    assert "row 3 (Participant 12): 400101202 has no grade (nothing in it" in export.remarks[1]


def test_a_grade_falls_only_when_that_is_meant(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101202", 49.99)]
    with pytest.raises(UsageError, match=r"row 3 .*: 50.00 becomes 49.99, which is less"):
        worksheet(results, SHEET.encode())
    export = worksheet(results, SHEET.encode(), Choices(anyway=True))
    assert ",49.99,100.00" in export.content.decode()


def test_another_maximum_is_refused_or_scaled(a_result: Callable[..., Any]) -> None:
    content = SHEET.replace("100.00", "20.00").replace("50.00", "").encode()
    results = [a_result("400101201", 64.5)]
    with pytest.raises(UsageError, match=r"row 2 .*the maximum is 20.00 there and 100 here.*--scale"):
        worksheet(results, content)
    export = worksheet(results, content, Choices(scale=True))
    assert ",12.9,20.00" in export.content.decode()
    scale = SHEET.replace("100.00", '"Good, Bad"').encode()
    with pytest.raises(UsageError, match="is not a number"):
        worksheet(results, scale)


def test_rows_that_fit_several_students_are_named(a_result: Callable[..., Any]) -> None:
    content = SHEET.replace("s17@", "400101202@").encode()
    results = [a_result("400101201"), a_result("400101202", 70.0)]
    with pytest.raises(UsageError) as refused:
        worksheet(results, content)
    assert str(refused.value).splitlines() == [
        "g.csv, row 2: fits 400101201 and 400101202.",
        "g.csv, row 3: fits 400101202, and so does row 2.",
        "Nothing was written. Fix the ids, or leave these rows as they are with --anyway.",
    ]
    export = worksheet(results, content, Choices(anyway=True))
    assert (
        export.content == content
        and export.count == 0
        and len([r for r in export.remarks if "fits" in r]) == 2
    )


def test_two_results_of_one_participant_are_in_doubt(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101201"), a_result("Student_17_11", 70.0)]
    with pytest.raises(UsageError, match="row 2: fits 400101201 and Student_17_11"):
        worksheet(results, SHEET.encode())


def of(number: str, carries: str = "", lms: str = "Moodle") -> Origin:
    return Origin(f"{lms}:{number}", f"x_{number}", f"moodle-{number}", lms, number, carries=carries)


def owned(held: bool, decided: bool) -> Ownership:
    return Ownership(held, decided, "Because.")


def with_owner(result: Any, held: bool, decided: bool) -> Any:
    return result[0], replace(result[1], ownership=owned(held, decided))


def grades(results: list[Any], text: str = SHEET) -> tuple[list[str], tuple[str, ...]]:
    export = worksheet(results, text.encode())
    rows = csv.DictReader(io.StringIO(export.content.decode("utf-8-sig"), newline=""))
    return [row["Grade"] for row in rows], export.remarks


def test_the_number_that_moodle_gave_an_upload_outranks_ids(a_result: Callable[..., Any]) -> None:
    """Participant 11's files are named for the one in row 3, and those of another one for row 2."""
    results = [
        a_result("400101202", 64.5, origin=of("11", "400101202")),
        a_result("400101201", 70.0, origin=of("12", "400101201")),
        a_result("400101299", 1.0, origin=of("99", "400101299")),
    ]
    assert grades(results)[0] == ["64.5", "70", "", "1", ""], "of a number without a row the id decides"


def test_a_number_of_another_lms_is_none(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101201", 64.5, origin=of("12", lms="Canvas"))]
    assert grades(results)[0] == ["64.5", "50.00", "", "", ""]


@pytest.mark.parametrize("student_id", ["Participant_13", "x_13", "13", "Student_19_13"])
def test_an_id_in_a_name_is_no_number_of_moodles(a_result: Callable[..., Any], student_id: str) -> None:
    results = [a_result(student_id, 64.5, origin=of("", student_id))]
    assert grades(results)[0] == ["", "50.00", "", "", ""]


def test_a_name_is_nobodys_id(a_result: Callable[..., Any]) -> None:
    results = [a_result("Student_20", 64.5, origin=of("", "Student_20"))]
    assert grades(results)[0] == ["", "50.00", "", "", ""]


def test_whose_it_is_by_a_persons_word(a_result: Callable[..., Any]) -> None:
    """The id first; and where no row has it, the number of the upload, unless that row is another's."""
    own = with_owner(a_result("400101201", 64.5, origin=of("13")), held=False, decided=True)
    assert grades([own])[0] == ["64.5", "50.00", "", "", ""]
    unlisted = with_owner(a_result("400101298", 64.5, origin=of("13")), held=False, decided=True)
    assert grades([unlisted])[0] == ["", "50.00", "64.5", "", ""]
    other = a_result("400101201", 70.0, origin=of("11"))
    taken = with_owner(a_result("400101298", 64.5, origin=of("11")), held=False, decided=True)
    assert grades([other, taken])[0] == ["70", "50.00", "", "", ""]


def test_what_is_nobodys_is_in_no_row_and_its_rows_are_told(a_result: Callable[..., Any]) -> None:
    held = with_owner(a_result("moodle-13", 64.5, origin=of("13", "400101201")), held=True, decided=False)
    found, remarks = grades([held])
    assert found == ["", "50.00", "", "", ""]
    assert (
        "g.csv, row 2 (Participant 11): nobody has said whose moodle-13 is; its cell stays as it was"
        in remarks
    )
    assert (
        "g.csv, row 4 (Participant 13): nobody has said whose moodle-13 is; its cell stays as it was"
        in remarks
    )
    assert "moodle-13 (x_13): is left out until `grader owner` says whose it is. Because." in remarks
    found, remarks = grades([held, a_result("400101201", 70.0, origin=of("11"))])
    assert found[0] == "70" and not any("row 2" in remark for remark in remarks)


def test_a_worksheet_in_another_language_and_blind(a_result: Callable[..., Any]) -> None:
    text = "ID;Status;Bewertung;Bestwertung;Zuletzt geändert (Bewertung)\n"
    rows = "Teilnehmer/in11;Abgegeben;;100,00;-\nTeilnehmer/in12;Abgegeben;3,50;100,00;-\n"
    results = [a_result("Teilnehmer_in_11", 64.5), a_result("Participant_12", 3.5)]
    with pytest.raises(UsageError, match=r"has no column 'Grade'.*--column; there are: .*'Bewertung'"):
        worksheet(results, (text + rows).encode())
    choices = Choices(column="bewertung")
    export = worksheet(results, (text + rows).encode(), choices)
    assert export.content.decode() == text + rows.replace("Abgegeben;;", "Abgegeben;64,5;")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"Last modified (grade)"', "Changed", "without which Moodle refuses it"),
        (",Grade,", ",Points,", "has no column 'Grade'"),
        (",Status,", ",Grade,", "has 2 columns 'Grade'"),
        ('Identifier,"Full name"', '"Full name",Identifier', None),
        ("Identifier,", "Surname,", None),
    ],
)
def test_what_is_no_worksheet_is_refused(
    results: list[Any], old: str, new: str, sentence: str | None
) -> None:
    content = SHEET.replace(old, new, 1).replace(
        "Participant 14", "nobody" if sentence is None else "Participant 14"
    )
    with pytest.raises(UsageError, match=sentence or "is not a grading worksheet"):
        worksheet(results, content.encode())


BOOK = (
    '"First name","Last name","ID number","Email address","Assignment: Lab 8 (Real)",'
    '"Quiz: Lab 8 quiz (Real)"\n'
    "Student,17,400101201,a@b.example,-,5.00\nStudent,18,,400101202@b.example,70.00,-\nStudent,19,9,,,\n"
)


def test_the_gradebooks_own_export_is_filled(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101201", 64.5), a_result("400101202", 70.0)]
    for column in ("", "Lab 8", "assignment: lab 8", "Assignment: Lab 8 (Real)"):
        file = ("b.csv", BOOK.encode())
        export = gradebook(results, file, Choices(column))
        assert export.content.decode() == BOOK.replace("example,-,", "example,64.5,")
    assert "b.csv, row 4 (Student): has no result; its cell stays as it was" in export.remarks
    again = gradebook(results, ("b.csv", export.content))
    assert again.content == export.content


def test_a_first_name_with_a_number_is_nobodys_number(a_result: Callable[..., Any]) -> None:
    book = BOOK.replace("Student,17", "Student 13,Student")
    export = gradebook(
        [a_result("Student_19_13")],
        ("b.csv", book.encode()),
    )
    assert export.content.decode() == book


def test_percentages_are_no_points(a_result: Callable[..., Any]) -> None:
    book = BOOK.replace("Lab 8 (Real)", "Lab 8 (Percentage)").encode()
    with pytest.raises(UsageError, match="holds no points"):
        gradebook([a_result("400101201")], ("b.csv", book))


def test_a_new_table_has_the_ids_and_no_formulas(a_result: Callable[..., Any]) -> None:
    results = [
        a_result("400101202", 70.0),
        a_result("=1+1", 64.5),
        a_result("3", None, status=GradeStatus.REFUSED),
    ]
    export = gradebook(results, None)
    assert export.content == b"ID number,Lab 8\n400101202,70\n'=1+1,64.5\n"
    assert export.remarks[0] == "3: is not in it (nothing in it could be graded)"


def test_what_moodle_refuses_is_refused_here(a_result: Callable[..., Any]) -> None:
    results = [a_result("400101201", 101.0, maximum=120)]
    with pytest.raises(UsageError, match="400101201 has more than 100 points"):
        gradebook(results, None)
    assert b",101\n" in gradebook(results, None, Choices(anyway=True)).content


def test_the_maximum_of_a_new_table_is_that_of_its_grades(a_result: Callable[..., Any]) -> None:
    """Those of a term's totals are not out of the points of an assignment."""
    export = gradebook([a_result("400101201", 88.0, maximum=120)], None)
    assert export.remarks[-1].endswith("make sure that the grade item's is 120.")
