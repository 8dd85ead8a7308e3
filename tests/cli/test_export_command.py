"""`grader export`: what is decided leaves the house, in the formats of others, and nothing else changes."""

import csv
import io
import json
import zipfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.edit import Released
from grader.gradebook import Gradebook
from grader.lms import FORMATS

STUDENTS = ("400101201", "400101202", "400101203", "400101204")
SHEET = "\ufeffIdentifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\r\n" + "".join(
    f"Participant {number},Student {number},{student},,100.00,-\r\n"
    for number, student in enumerate(STUDENTS, 17)
)


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "Grades.csv"
    path.write_bytes(SHEET.encode())
    return path


@pytest.fixture
def marked_class(graded_class: Path, tmp_path: Path) -> Path:
    """The class when everything is decided."""
    path = tmp_path / "marks.csv"
    said("marks", "export", graded_class, path)
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, rows[0])
    writer.writeheader()
    writer.writerows(row if row["points"] else {**row, "points": "1", "comment": "Seen."} for row in rows)
    path.write_text(buffer.getvalue(), "utf-8")
    said("marks", "import", graded_class, path)
    said("rule", graded_class, "--all", "--why", "One missing file means no grade.")
    return graded_class


def said(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def totals(out: Path) -> dict[str, float]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    return {one["student_id"]: one["total"] for one in document["submissions"]}


def written(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "sqlite" not in path.name
    }


def test_nothing_leaves_while_a_grade_awaits_a_person(graded_class: Path, sheet: Path) -> None:
    before = written(graded_class)
    for words in (
        ("moodle-worksheet", "--into", sheet),
        ("moodle-gradebook",),
        ("gradescope",),
        ("feedback-zip", "--into", sheet),
    ):
        name, *rest = words
        output = said("export", name, graded_class, *rest, code=2)
        assert output.startswith("error: 4 of 4 grades still await a person, so nothing was exported.")
        assert "  400101201: awaiting report_quality, q6" in output and "--partial" in output
    assert written(graded_class) == before


def test_the_worksheet_is_copied_and_filled(marked_class: Path, sheet: Path, tmp_path: Path) -> None:
    output = said("export", "moodle-worksheet", marked_class, "--into", sheet, "--assignment", "vit_defects")
    filled = marked_class / "exports/Grades.csv"
    assert output.startswith(f"{filled}: 4 grades.\n")
    assert sheet.read_bytes() == SHEET.encode()
    rows = csv.DictReader(io.StringIO(filled.read_text("utf-8-sig")))
    assert {row["ID number"]: float(row["Grade"]) for row in rows} == totals(marked_class)
    again = tmp_path / "again.csv"
    said("export", "moodle-worksheet", marked_class, "--into", filled, "--to", again)
    assert again.read_bytes() == filled.read_bytes()


def test_partly_marked_classes_are_exported_partly(marked_class: Path, sheet: Path) -> None:
    said("marks", "set", marked_class, "400101202", "q6", "none", "--why", "Again.", "--allow-lower")
    said("export", "moodle-worksheet", marked_class, "--into", sheet, code=2)
    output = said("export", "moodle-worksheet", marked_class, "--into", sheet, "--partial")
    place = "Grades.csv, row 3 (Participant 18)"
    assert f"  {place}: 400101202 has no grade (awaiting q6); its cell stays as it was\n" in output
    assert ",400101202,,100.00" in (marked_class / "exports/Grades.csv").read_text("utf-8-sig")


def test_the_gradebooks_of_moodle_and_canvas(marked_class: Path, tmp_path: Path) -> None:
    output = said("export", "moodle-gradebook", marked_class)
    made = (marked_class / "exports/vit_defects-moodle.csv").read_text("utf-8")
    assert made.splitlines()[0] == "ID number,Vision Transformer for steel surface defects"
    assert "make sure that the grade item's is 100" in output
    book = tmp_path / "canvas.csv"
    head = "Student,ID,SIS User ID,SIS Login ID,Section,Lab 8 (7)\n    Points Possible,,,,,100.00\n"
    book.write_text(head + "".join(f"S,{n},{one},,X,\n" for n, one in enumerate(STUDENTS)))
    assert "Name one with --column" in said("export", "canvas", marked_class, "--into", book, code=2)
    said("export", "canvas", marked_class, "--into", book, "--column", "Lab 8")
    rows = csv.DictReader(io.StringIO((marked_class / "exports/canvas.csv").read_text()))
    assert {row["SIS User ID"]: float(row["Lab 8 (7)"]) for row in list(rows)[1:]} == totals(marked_class)


def test_the_grade_center_of_blackboard(marked_class: Path, tmp_path: Path) -> None:
    book = tmp_path / "gc.xls"
    head = '"Last Name"\t"Username"\t"Student ID"\t"Lab 8 [Total Pts: 100 Score] |7"\r\n'
    rows = "".join(f'"S"\t"u{n}"\t"{one}"\t"Needs Grading"\r\n' for n, one in enumerate(STUDENTS))
    book.write_bytes((head + rows).encode("utf-16"))
    said("export", "blackboard", marked_class, "--into", book, code=2)
    output = said("export", "blackboard", marked_class, "--into", book, "--column", "Lab 8")
    assert output.startswith(f"{marked_class / 'exports/gc.xls'}: 4 grades.\n")
    text = (marked_class / "exports/gc.xls").read_bytes().decode("utf-16")
    filled = {row[2]: float(row[3]) for row in list(csv.reader(io.StringIO(text), dialect="excel-tab"))[1:]}
    assert filled == totals(marked_class)
    with Gradebook(marked_class) as known:
        ways = {edit.way for edit in known.snapshot().edits if isinstance(edit, Released)}
    assert ways == {"blackboard"}


def test_files_for_other_programs(marked_class: Path, sheet: Path) -> None:
    assert f"{marked_class}/exports/gradescope: 4 students.\n" in said("export", "gradescope", marked_class)
    scores = {
        path.parent.name: json.loads(path.read_text("utf-8"))["score"]
        for path in (marked_class / "exports/gradescope").glob("*/results.json")
    }
    assert scores == totals(marked_class)
    said("export", "feedback-zip", marked_class, "--into", sheet)
    with zipfile.ZipFile(marked_class / "exports/feedback.zip") as archive:
        assert archive.namelist()[0] == "Student 17_17_assignfeedback_file_report.html"
        report = (marked_class / "students/400101201/report.html").read_bytes()
        assert archive.read(archive.namelist()[0]) == report
    assert "Give the grading worksheet with --into" in said("export", "feedback-zip", marked_class, code=2)


def test_an_export_says_what_the_reports_say(marked_class: Path, tmp_path: Path, course_root: Path) -> None:
    course = tmp_path / "course"
    for path in (course_root / "course.toml", *(course_root / "reference/vit_defects").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = course / path.relative_to(course_root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = course / "reference/vit_defects/assignment.toml"
    text = file.read_text("utf-8")
    changed = text.replace("{ at = 0.80, points = 15 }", "{ at = 0.70, points = 15 }")
    assert changed != text
    file.write_text(changed, "utf-8")
    output = said("export", "moodle-gradebook", marked_class, "--course", course, code=2)
    assert (
        output.startswith("error: 400101201: the report shows a different total")
        and "grader regrade" in output
    )


def test_exports_are_the_same_every_time_and_are_noted_once(marked_class: Path, sheet: Path) -> None:
    made, states = [], []
    for _ in range(2):
        said("export", "gradescope", marked_class)
        said("export", "feedback-zip", marked_class, "--into", sheet)
        made.append(written(marked_class))
        with Gradebook(marked_class) as book:
            states.append(book.snapshot().state)
    assert made[0] == made[1] and states[0] == states[1]


def test_the_given_file_is_never_replaced(marked_class: Path, sheet: Path) -> None:
    """It may be an earlier copy, in the place where the next one would go."""
    given = sheet.read_bytes()
    export = ("export", "moodle-worksheet", marked_class, "--into")
    told = said(*export, sheet, "--to", sheet, code=2)
    assert f"{sheet} stays as the LMS made it, and this would replace it. Give another place" in told
    copy = marked_class / "exports" / sheet.name
    copy.parent.mkdir()
    copy.write_bytes(given)
    said(*export, copy, code=2)
    assert sheet.read_bytes() == copy.read_bytes() == given


def test_a_file_that_is_not_there_is_named(marked_class: Path, tmp_path: Path) -> None:
    output = said("export", "canvas", marked_class, "--into", tmp_path / "no.csv", code=2)
    assert "no.csv cannot be read (No such file or directory)" in output


def test_the_course_of_the_program_reaches_every_format(graded_class: Path, sheet: Path) -> None:
    from grader.cli.publishing_commands import export_command

    assert isinstance(export_command, click.Group) and list(export_command.commands) == [
        one.name for one in FORMATS
    ]
    for name, one in export_command.commands.items():
        into = ["--into", sheet] if any(option.required for option in one.params[1:]) else []
        output = said("--course", "/nowhere", "export", name, graded_class, *into, code=2)
        assert "--course names /nowhere" in output, name
