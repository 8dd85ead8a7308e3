"""`grader requests`: a student disputes points, a person answers, and the student reads the answer."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openpyxl import Workbook, load_workbook

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from tests.cli.test_oral_command import NOW
from tests.copied_assignment import copied_assignment

FIRST, SECOND, THIRD = "400101201", "400101202", "400101203"
RULES = '\n[regrade_requests]\ndays = 7\nmost = 2\nanswered_by = "{}"\n'


def said(*words: object, by: str = "head", code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader", env={"GRADER_BY": by})
    assert result.exit_code == code, result.output
    return result.output.replace("\xa0", " ")


@pytest.fixture
def course(tmp_path: Path, course_root: Path, assignment: Assignment, monkeypatch: Any) -> Path:
    """A course that takes requests; who answers is still to be written."""
    folder = tmp_path / "course"
    copied_assignment(assignment.folder, folder)
    shutil.copy(course_root / "course.toml", folder)
    monkeypatch.setenv("GRADER_COURSE", str(folder))
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    return folder


@pytest.fixture
def out(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    course: Path,
    assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> Path:
    """Three students; ta1 gave each 2 points for Q6, and that was released."""
    toml = course / "reference" / assignment.id / "assignment.toml"
    answered_by = getattr(request, "param", "marker")
    toml.write_text(toml.read_text("utf-8") + RULES.format(answered_by), "utf-8")
    folder = tmp_path / "results"
    with Gradebook(folder, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, folder, "ta1")
        for student in (FIRST, SECOND, THIRD):
            keeper.kept(class_evidence(student), {}, NOW)
    said("regrade", folder)
    for student in (FIRST, SECOND, THIRD):
        said("marks", "set", folder, student, "q6", "2", "--why", "Part b is missing.", by="ta1")
    said("publish", folder, "--to", tmp_path / "published", "--partial")
    return folder


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def points_of(out: Path, student: str, item: str = "q6") -> float | None:
    found: float | None = next(one["points"] for one in told(out, student)["items"] if one["id"] == item)
    return found


def report(out: Path, student: str) -> str:
    return (out / "students" / student / "report.html").read_text("utf-8")


def test_a_student_asks_and_reads_the_answer(out: Path, tmp_path: Path) -> None:
    before = told(out, FIRST)["total"], told(out, SECOND)
    why = "Part b is on page 4 <script>alert(1)</script>."
    assert "1 request taken." in said("requests", "ask", out, FIRST, "q6", "--why", why)
    assert told(out, FIRST)["total"] == before[0]  # asking costs nothing and gives nothing
    shown = said("requests", "list", out)
    assert f"{FIRST}  q6: 2 of " in shown and "by ta1" in shown
    assert "  asks: Part b is on page 4" in shown and "  was told: Part b is missing." in shown
    page = report(out, FIRST)
    assert "Nobody has answered yet." in page and "Part b is on page 4" in page
    assert "<script>alert" not in page
    queue = (out / "index.html").read_text("utf-8")
    assert "Disputes points" in queue and "q6: Part b is on page 4" in queue and "<script>alert" not in queue
    answer = "It is there: half of the missing points."
    assert "1 request answered." in said("requests", "answer", out, FIRST, "q6", "3.5", "--why", answer)
    assert points_of(out, FIRST) == 3.5 and told(out, SECOND) == before[1]
    (request,) = told(out, FIRST)["requests"]
    assert (request["before"], request["after"], request["answer"]) == (2, 3.5, answer)
    page = report(out, FIRST)
    assert "2 → 3.5 points." in page and answer in page and "Nobody has answered" not in page
    assert "Part b is missing. " + answer in page  # what the marker said stays
    assert "ta1" not in page  # no report names a marker
    assert "No request is open." in said("requests", "list", out)
    history = said("history", out, FIRST)
    assert "request" in history and "q6: 2 is disputed" in history and "answer" in history
    said("publish", out, "--to", tmp_path / "published", "--update", "--partial")
    assert answer in (tmp_path / "published" / "students" / FIRST / "report.html").read_text("utf-8")


def test_points_may_stay(out: Path) -> None:
    said("requests", "ask", out, FIRST, "q6", "--why", "Please look again.")
    said("requests", "answer", out, FIRST, "q6", "--why", "Page 4 answers part a.")
    assert points_of(out, FIRST) == 2 and "The points stay." in report(out, FIRST)


def test_a_released_grade_falls_only_when_it_may(out: Path) -> None:
    said("requests", "ask", out, FIRST, "q6", "--why", "Please look again.")
    words = ("requests", "answer", out, FIRST, "q6", "1", "--why", "Part a is copied from the handout.")
    assert "A grade that was released would fall" in said(*words, code=2)
    assert points_of(out, FIRST) == 2 and "Nobody has answered yet." in report(out, FIRST)
    said(*words, "--allow-lower")
    assert points_of(out, FIRST) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("words", "told_so"),
    [
        ((FIRST, "q6", "--why", " "), "the reason is empty"),
        (("400109999", "q6", "--why", "x"), "'400109999' is not in the gradebook"),
        ((FIRST, "q77", "--why", "x"), "the rubric has no 'q77'"),
        ((FIRST, "q10", "--why", "x"), "'q10' is marked in parts"),
        ((FIRST, "q6", "--why", "x", "--at", "2099-01-01T10:00+00:00"), "requests ended on"),
        ((FIRST, "q6", "--why", "x", "--at", "2099-01-01T10:00"), "has no time zone"),
        ((FIRST, "q6", "--why", "x", "--at", "tomorrow"), "'tomorrow' is not a time"),
        (
            (FIRST, "q6", "--why", "x", "--at", "2025-03-02T10:00+01:00"),
            "before the grade was first released",
        ),
        ((FIRST, "q6", "--why", "x", "--at", "9999-12-31T23:59-14:00", "--anyway"), "is too far away"),
        ((FIRST, "q6", "--why", "x", "--at", "0001-01-01T00:00+14:00", "--anyway"), "is too far away"),
    ],
)
def test_what_cannot_be_asked_is_told(out: Path, words: tuple[str, ...], told_so: str) -> None:
    refused = said("requests", "ask", out, *words, code=2)
    assert told_so in refused and "Traceback" not in refused
    assert told(out, FIRST)["requests"] == []


def test_a_late_request_is_taken_when_a_person_says_so(out: Path) -> None:
    at = ("--at", "2099-01-01T10:00+00:00")
    said("requests", "ask", out, FIRST, "q6", "--why", "I was ill.", *at, "--anyway")
    assert len(told(out, FIRST)["requests"]) == 1


def test_each_item_is_disputed_once_at_a_time_and_only_so_often(out: Path) -> None:
    def ask(item: str, why: str, code: int = 0) -> str:
        return said("requests", "ask", out, FIRST, item, "--why", why, code=code)

    ask("q6", "Part b is on page 4.")
    assert "had been taken before" in ask("q6", "Part b is on page 4.")
    assert "is open. Answer that one first" in ask("q6", "And part c.", code=2)
    ask("training", "It trains on my laptop.")
    assert "has made 2 requests, and 2 are allowed" in ask("model", "Look again.", code=2)
    assert len(told(out, FIRST)["requests"]) == 2


def test_nothing_can_be_disputed_before_it_is_released(
    out: Path, assignment: Assignment, class_evidence: Callable[..., Any]
) -> None:
    new = "400101209"
    with Gradebook(out, assignment_id=assignment.id) as book:
        Keeper(assignment, book, out, "ta1").kept(class_evidence(new), {}, NOW)
    told_so = said("requests", "ask", out, new, "q6", "--why", "x", code=2)
    assert "nothing was released to the student yet" in told_so


def test_a_request_about_an_item_that_the_rubric_lost_is_listed_and_answered(
    out: Path, course: Path, assignment: Assignment
) -> None:
    said("requests", "ask", out, FIRST, "q7", "--why", "Part b is on page 4.")
    for file in (course / "reference" / assignment.id).glob("*.toml"):
        file.write_text(file.read_text("utf-8").replace('"q7"', '"q7b"'), "utf-8")
    said("regrade", out, "--allow-lower")
    listed = said("requests", "list", out)
    assert f"{FIRST}  q7: the rubric has no such item any more" in listed and "No request" not in listed
    said("requests", "answer", out, FIRST, "q7", "--why", "It is part of q7b now.")
    assert "No request is open." in said("requests", "list", out) and "It is part of q7b" in report(
        out, FIRST
    )


@pytest.mark.parametrize("days", ["inf", "1e9", "0"])
def test_a_window_without_an_end_is_told(out: Path, course: Path, assignment: Assignment, days: str) -> None:
    toml = course / "reference" / assignment.id / "assignment.toml"
    toml.write_text(toml.read_text("utf-8").replace("days = 7", f"days = {days}"), "utf-8")
    told_so = said("requests", "ask", out, FIRST, "q6", "--why", "x", code=2)
    assert "days" in told_so and "assignment.toml" in told_so and "fault of the grader" not in told_so


def test_a_course_without_the_rule_takes_none(
    tmp_path: Path, course: Path, assignment: Assignment, class_evidence: Callable[..., Any]
) -> None:
    folder = tmp_path / "results"
    with Gradebook(folder, assignment_id=assignment.id) as book:
        Keeper(assignment, book, folder, "ta1").kept(class_evidence(FIRST), {}, NOW)
    assert "takes no regrade requests. Add `[regrade_requests]`" in said(
        "requests", "ask", folder, FIRST, "q6", "--why", "x", code=2
    )


def test_a_growing_form_is_taken_again_and_again(out: Path, tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    lines = ["student_id,item,reason", f"{FIRST},q6,Part b is on page 4.", f"{SECOND},q6,So is mine."]
    form.write_text("\n".join(lines[:2]) + "\n", "utf-8")
    assert "1 request taken." in said("requests", "collect", out, form)
    form.write_text("\n".join(lines) + "\n", "utf-8")
    assert "1 request taken, 1 had been taken before." in said("requests", "collect", out, form)
    form.write_text("\n".join([*lines, f"{THIRD},q6,", f"{THIRD},q99,What?"]) + "\n", "utf-8")
    refused = said("requests", "collect", out, form, code=2)
    assert "form.csv, row 4: the reason is empty" in refused and "form.csv, row 5: item" in refused
    assert told(out, THIRD)["requests"] == []


def test_a_form_may_have_ids_in_other_digits(out: Path, tmp_path: Path) -> None:
    persian = FIRST.translate(dict(zip(range(48, 58), "۰۱۲۳۴۵۶۷۸۹", strict=True)))
    form = tmp_path / "form.csv"
    form.write_text(f"student_id;item;reason\n{persian};q6;سوال ب\n", "utf-8-sig")
    assert "1 request taken." in said("requests", "collect", out, form)
    assert len(told(out, FIRST)["requests"]) == 1


def test_what_a_form_has_beside_does_no_harm(out: Path, tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["Timestamp", "student_id", "item", "reason"])
    book.active.append([datetime(2026, 4, 5, 12), FIRST, "q6", "Part b is on page 4."])
    book.save(tmp_path / "form.xlsx")
    assert "1 request taken." in said("requests", "collect", out, tmp_path / "form.xlsx")


@pytest.mark.sampled(2)
def test_a_time_that_a_spreadsheet_made_a_date_is_told(out: Path, tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["student_id", "item", "reason", "asked"])
    book.active.append(["400101201", "q6", "Part b.", datetime(2026, 3, 2, 18)])
    book.save(tmp_path / "form.xlsx")
    told = said("requests", "collect", out, tmp_path / "form.xlsx", code=2)
    assert "form.xlsx, row 2, column 'asked': it holds a date, which" in told and "number" not in told


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_sheet_of_answers_goes_out_and_comes_in(out: Path, tmp_path: Path, suffix: str) -> None:
    for student in (FIRST, SECOND, THIRD):
        said("requests", "ask", out, student, "q6", "--why", "=1+1 is part b")
    sheet = tmp_path / f"requests.{suffix}"
    assert "3 requests" in said("requests", "export", out, sheet)
    assert "exists" in said("requests", "export", out, sheet, code=2)
    answers = {FIRST: ("4", "You are right."), SECOND: ("", "It is not there.")}
    if suffix == "xlsx":
        book = load_workbook(sheet)
        [header, *rows] = book.active.iter_rows()
        names = [cell.value for cell in header]
        for row in rows:
            assert row[names.index("reason")].data_type == "s"
            points, answer = answers.get(row[0].value, ("", ""))
            row[names.index("points")].value = float(points) if points else None
            row[names.index("answer")].value = answer
        book.save(sheet)
    else:
        table = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))
        for cells in table:
            cells["points"], cells["answer"] = answers.get(cells["student_id"], ("", ""))
        with sheet.open("w", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
    assert "2 requests answered." in said("requests", "import", out, sheet)
    assert [points_of(out, student) for student in (FIRST, SECOND, THIRD)] == [4, 2, 2]
    again = said("requests", "import", out, sheet, code=2)  # they are answered: nothing is said twice
    assert again.count("there is no open request") == 2 and "Nothing was taken." in again


@pytest.mark.parametrize("out", ["another"], indirect=True)
def test_another_than_the_marker_answers_where_the_course_says_so(out: Path) -> None:
    said("requests", "ask", out, FIRST, "q6", "--why", "Part b is on page 4.")
    assert "No request is open." in said("requests", "list", out, "--mine", by="ta1")
    assert FIRST in said("requests", "list", out, "--mine", by="ta2")
    words = ("requests", "answer", out, FIRST, "q6", "--why", "No.")
    assert "somebody else answers" in said(*words, by="ta1", code=2)
    said(*words, by="ta2")


def test_the_marker_answers_elsewhere(out: Path) -> None:
    said("requests", "ask", out, FIRST, "q6", "--why", "Part b is on page 4.")
    said("requests", "ask", out, FIRST, "model", "--why", "My model is right.")  # points of the checks
    mine = said("requests", "list", out, "--mine", by="ta1")
    assert "q6" in mine and "model" in mine and "by the checks" in mine
    theirs = said("requests", "list", out, "--mine", by="ta2")
    assert "q6" not in theirs and "model" in theirs


def test_points_of_the_checks_can_be_disputed(out: Path) -> None:
    said("requests", "ask", out, FIRST, "model", "--why", "My model is right.")
    before = points_of(out, FIRST, "model")
    assert before
    answer = "The check was mistaken about it."
    said("requests", "answer", out, FIRST, "model", before - 1, "--why", answer, "--allow-lower")
    assert points_of(out, FIRST, "model") == before - 1 and answer in report(out, FIRST)


def test_requests_of_one_team_change_the_points_of_all(
    out: Path, assignment: Assignment, class_evidence: Callable[..., Any], tmp_path: Path
) -> None:
    team = ("400101211", "400101212")
    with Gradebook(out, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for student in team:
            keeper.kept(replace(class_evidence(student), team=team, submission_digest="ab" * 32), {}, NOW)
    said("marks", "set", out, team[0], "q6", "2", "--why", "Part b is missing.", by="ta1")
    said("publish", out, "--to", tmp_path / "published", "--update", "--partial")
    said("requests", "ask", out, team[1], "q6", "--why", "Part b is on page 4.")
    said("requests", "answer", out, team[1], "q6", "4", "--why", "It is.")
    assert [points_of(out, student) for student in team] == [4, 4]
    assert told(out, team[0])["requests"] == [] and len(told(out, team[1])["requests"]) == 1
