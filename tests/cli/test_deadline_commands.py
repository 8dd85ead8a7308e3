"""`grader received` and `grader regrade --extensions`: late work is settled by a person's word."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.submission import Delivery
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.results.class_pages import write_pages
from grader.results.current_state import reported_results

STUDENT, NOW = "400101201", datetime(2026, 2, 5, tzinfo=UTC)
DEADLINE = "# deadline = 2026-01-31T23:59:00+03:30"
Say = Callable[..., str]


@pytest.fixture
def late_course(tmp_path: Path, course_root: Path) -> Path:
    """The course with a deadline, and a point for each day after it."""
    root = tmp_path / "course"
    for path in (course_root / "course.toml", *(course_root / "reference/vit_defects").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = root / path.relative_to(course_root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = root / "reference/vit_defects/assignment.toml"
    text = file.read_text("utf-8")
    assert text.count(DEADLINE) == 1
    file.write_text(text.replace(DEADLINE, DEADLINE[2:]) + "\n[late]\npoints_per_day = 2\n", "utf-8")
    return root


@pytest.fixture
def late_assignment(late_course: Path) -> Assignment:
    return read_assignment(late_course / "reference/vit_defects")


@pytest.fixture
def marked(late_assignment: Assignment, graded_class: Path, class_evidence: Callable[..., Any]) -> Evidence:
    """The student's submission as Canvas gives it: late, and nobody knows by how much."""
    evidence: Evidence = replace(class_evidence(STUDENT), delivery=Delivery(marked_late=True))
    with Gradebook(graded_class) as book:
        Keeper(late_assignment, book, graded_class, "ta1").kept(evidence, {}, NOW)
        write_pages(late_assignment, book, graded_class, NOW)
    return evidence


@pytest.fixture
def say(graded_class: Path, late_course: Path, monkeypatch: pytest.MonkeyPatch, marked: Evidence) -> Say:
    """Run a command on the class."""
    monkeypatch.setenv("GRADER_COURSE", str(late_course))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)

    def said(command: str, *words: object, code: int = 0) -> str:
        done = CliRunner().invoke(cli, [command, str(graded_class), *map(str, words)], prog_name="grader")
        assert done.exit_code == code, done.output
        return done.output

    return said


def release(say: Say, to: Path) -> None:
    """Publish the class as it is."""
    say("publish", "--to", to, "--partial")


def late(out: Path) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == STUDENT)
    return {**found["late"], "marked": found["marked_late"]}


def test_a_mark_without_a_time_is_settled_by_when_it_came(say: Say, graded_class: Path) -> None:
    say("regrade")
    assert late(graded_class)["asked"] and late(graded_class)["total_after"] is None
    output = say("received", STUDENT, "2026-02-01T12:00+03:30", "--why", "SpeedGrader says so.")
    assert "late, so 1 day at 2 points each: 2 points are taken off" in output
    found = late(graded_class)
    assert (found["days"], found["penalty"], found["total_after"], found["asked"]) == (1, 2, 60, False)
    assert found["decided"] == "ta1: SpeedGrader says so." and found["marked"], "what the LMS said stays"
    report = (graded_class / f"students/{STUDENT}/report.html").read_text("utf-8")
    assert "SpeedGrader says so." in report and "2026-02-01" in report
    assert 'id="late-decide"' not in (graded_class / "index.html").read_text("utf-8")


def test_a_time_is_taken_back_and_in_time_is_said_without_one(
    say: Say, graded_class: Path, tmp_path: Path
) -> None:
    say("received", STUDENT, "2026-02-01T12:00+03:30", "--why", "SpeedGrader.")
    release(say, tmp_path / "published")
    say("received", STUDENT, "none", "--why", "Another student's.", code=2)
    say("received", STUDENT, "none", "--why", "Another student's.", "--allow-lower")
    assert late(graded_class)["asked"]
    assert "It came on time. (By mail.)" in say("received", STUDENT, "in-time", "--why", "By mail.")
    assert (late(graded_class)["state"], late(graded_class)["total_after"]) == ("in_time", 62)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"])
def test_a_time_beyond_the_calendar_is_told(say: Say, moment: str) -> None:
    refused = say("received", STUDENT, moment, "--why", "By mail.", code=2)
    assert f"{moment}: is too far away. Write a date" in refused


def test_what_takes_more_points_off_must_be_meant_once_it_was_released(
    say: Say, graded_class: Path, tmp_path: Path
) -> None:
    words = (STUDENT, "2026-02-03T12:00+03:30", "--why", "It was the mail of another.")
    say("received", STUDENT, "in-time", "--why", "By mail.")
    say("received", *words)
    say("received", STUDENT, "in-time", "--why", "By mail after all.")
    release(say, tmp_path / "published")
    assert "  400101201: 62 -> 56" in say("received", *words, code=2)
    assert late(graded_class)["state"] == "in_time"
    say("received", *words, "--allow-lower")
    assert late(graded_class)["penalty"] == 6


def test_a_grade_that_nobody_knows_any_more_stops_nobody_else(
    say: Say, graded_class: Path, late_assignment: Assignment, marked: Evidence, tmp_path: Path
) -> None:
    """A late attempt came after the release, and nobody said yet what that costs."""
    say("received", STUDENT, "in-time", "--why", "By mail.")
    release(say, tmp_path / "published")
    with Gradebook(graded_class) as book:
        keeper = Keeper(late_assignment, book, graded_class, "ta1")
        keeper.kept(replace(marked, submission_digest="another"), {}, NOW)
        write_pages(late_assignment, book, graded_class, NOW)

    def mark(*given: str) -> str:
        words = ["marks", "set", str(graded_class), *given, "--why", "Read again."]
        return CliRunner().invoke(cli, words, prog_name="grader").output

    for student, item in (("400101202", "q6"), (STUDENT, "q6"), (STUDENT, "q7")):
        assert mark(student, item, "5").endswith("1 total changed.\n")
    assert "0 totals changed" in say("regrade")
    assert "would fall" in mark(STUDENT, "model", "1")


def test_what_was_said_is_about_those_files_alone(
    say: Say, graded_class: Path, late_assignment: Assignment, marked: Evidence
) -> None:
    say("received", STUDENT, "in-time", "--why", "By mail.")
    with Gradebook(graded_class) as book:
        keeper = Keeper(late_assignment, book, graded_class, "ta1")
        again = keeper.kept(replace(marked, engine="2"), {}, NOW).score.late
        later = keeper.kept(replace(marked, submission_digest="another"), {}, NOW).score.late
    assert again is not None and again.state == "in_time"
    assert later is not None and later.asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((STUDENT, "yesterday"), "yesterday: is not a date and time. Write it as in 2026-01-31T23:40+03:30"),
        ((STUDENT, "2026-02-01T12:00"), "2026-02-01T12:00: has no time zone."),
        (("7", "in-time"), "there is no student '7' in the gradebook."),
    ],
)
def test_what_cannot_be_recorded_is_told(say: Say, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in say("received", *words, "--why", "x", code=2)


def test_extensions_after_the_fact_are_decisions(say: Say, graded_class: Path, tmp_path: Path) -> None:
    say("received", STUDENT, "2026-02-01T12:00+03:30", "--why", "SpeedGrader.")
    file = tmp_path / "extensions.csv"
    file.write_text(
        f"student_id,deadline\n{STUDENT},2026-02-03T23:59:00+03:30\n999,2026-02-03T23:59:00+03:30\n"
    )
    output = say("regrade", "--extensions", file)
    assert "New extensions: 1." in output and "999: has an extension, and no result." in output
    found = late(graded_class)
    assert (found["state"], found["extended"], found["total_after"]) == ("in_time", True, 62)
    assert "New extensions: 0." in say("regrade", "--extensions", file), "the same again adds nothing"
    history = say("history", STUDENT)
    assert "extension" in history and "An extension, by extensions.csv." in history
    assert "2026-02-01" in history

    release(say, tmp_path / "published")
    file.write_text(f"student_id,deadline\n{STUDENT},2026-02-01T00:00:00+03:30\n")
    assert "62 -> 60" in say("regrade", "--extensions", file, code=2)
    say("regrade", "--extensions", file, "--allow-lower")
    assert late(graded_class)["penalty"] == 2


def test_a_grade_that_moves_is_told_though_the_points_do_not(
    say: Say, graded_class: Path, tmp_path: Path
) -> None:
    """By every command that moves it, in the summary, and in the history."""
    received = say("received", STUDENT, "2026-02-05T12:00+03:30", "--why", "SpeedGrader.")
    assert received.startswith(f"{STUDENT}: unknown -> 52 after lateness\n"), received
    assert received.endswith(" 1 total changed.\n")
    file = tmp_path / "extensions.csv"
    file.write_text(f"student_id,deadline\n{STUDENT},2026-02-09T23:59:00+03:30\n")
    assert say("regrade", "--extensions", file) == (
        f"{STUDENT}: 52 -> 62 after lateness\n"
        "4 submissions scored again. New extensions: 1. 1 total changed.\n"
    )
    assert say("regrade", "--extensions", file).endswith("New extensions: 0. 0 totals changed.\n")
    totals = [line for line in say("history", STUDENT).splitlines() if "  total " in line]
    assert totals[-2].endswith("62 of 65 decided, 35 awaiting, 52 after lateness (received 400101201)")
    assert totals[-1].endswith("62 of 65 decided, 35 awaiting (regrade)")


def test_a_rule_on_late_work_that_changes_moves_grades(
    say: Say, late_course: Path, graded_class: Path, tmp_path: Path
) -> None:
    say("received", STUDENT, "2026-02-01T12:00+03:30", "--why", "SpeedGrader.")
    file = late_course / "reference/vit_defects/assignment.toml"
    rule = file.read_text("utf-8")
    assert rule.endswith("points_per_day = 2\n")
    file.write_text(rule.replace("points_per_day = 2", "points_per_day = 1"), "utf-8")
    assert say("regrade").splitlines()[0] == f"{STUDENT}: 60 -> 61 after lateness"
    release(say, tmp_path / "published")
    file.write_text(rule.replace("points_per_day = 2", "points_per_day = 9"), "utf-8")
    assert f"  {STUDENT}: 61 -> 53 after lateness" in say("regrade", code=2)
    assert f"{STUDENT}: 61 -> 53 after lateness" in say("regrade", "--allow-lower")
    told = say("rule", "--all", "--why", "No file, no grade.")
    assert "after lateness" not in told, "of whom nothing moved is not told"
    mark = ["marks", "set", str(graded_class), STUDENT, "q6", "4", "--why", "Well argued."]
    assert CliRunner().invoke(cli, mark, prog_name="grader").output.splitlines()[-2:] == [
        f"{STUDENT}: 62 of 65 decided, 35 awaiting, 53 after lateness -> "
        "66 of 70 decided, 30 awaiting, 57 after lateness",
        "1 total changed.",
    ]


def test_a_book_that_told_nothing_of_lateness_moves_only_the_grades_that_move(
    say: Say,
    graded_class: Path,
    tmp_path: Path,
    late_assignment: Assignment,
    class_evidence: Callable[..., Any],
) -> None:
    """Older totals say nothing of it: neither do all grades change, nor does one move in silence."""
    for student_id in (STUDENT, "400101202"):
        late_one = replace(class_evidence(student_id), received_at=NOW)
        with Gradebook(graded_class) as book:
            Keeper(late_assignment, book, graded_class, "ta1", allow_lower=True).kept(late_one, {}, NOW)
    with closing(sqlite3.connect(graded_class / "gradebook.sqlite")) as raw, raw:
        raw.execute("DROP TRIGGER totals_no_update")
        raw.execute("UPDATE totals SET final = NULL, lateness = NULL")
    raw.close()
    with Gradebook(graded_class) as book:
        before = {one: len(book.totals(one)) for one in book.students()}
        assert {total.lateness for one in before for total in book.totals(one)} == {None}
        reported_results(late_assignment, book.snapshot())
    assert say("regrade").endswith("4 submissions scored again. 0 totals changed.\n")
    assert say("history", STUDENT).splitlines()[0].endswith("35 awaiting")
    file = tmp_path / "extensions.csv"
    file.write_text(f"student_id,deadline\n{STUDENT},2026-02-09T23:59:00+03:30\n")
    assert say("regrade", "--extensions", file) == (
        f"{STUDENT}: 52 -> 62 after lateness\n"
        "4 submissions scored again. New extensions: 1. 1 total changed.\n"
    )
    with Gradebook(graded_class) as book:
        after = {one: len(book.totals(one)) for one in book.students()}
        assert after == {**before, STUDENT: before[STUDENT] + 1}
        assert book.totals(STUDENT)[-1].final == 62
        reported_results(late_assignment, book.snapshot())


def test_of_two_extensions_the_later_deadline_counts(
    say: Say, graded_class: Path, late_assignment: Assignment, marked: Evidence, tmp_path: Path
) -> None:
    """One that is given when grading, and one that was decided before."""
    file = tmp_path / "extensions.csv"
    file.write_text(f"student_id,deadline\n{STUDENT},2026-02-02T00:00:00+03:30\n")
    say("regrade", "--extensions", file)
    with Gradebook(graded_class) as book:
        for day, due in ((1, 2), (4, 4)):
            delivery = Delivery(extension=datetime(2026, 2, day, tzinfo=late_assignment.deadline.tzinfo))  # type: ignore[union-attr]
            made = replace(marked, received_at=NOW, delivery=delivery)
            record = Keeper(late_assignment, book, graded_class, "ta1").kept(made, {}, NOW).score.late
            assert record is not None and record.due is not None and record.extended
            assert record.due.astimezone(late_assignment.deadline.tzinfo).day == due  # type: ignore[union-attr]
