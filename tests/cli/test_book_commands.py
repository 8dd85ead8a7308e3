"""`grader regrade`, `waive`, `rule` and `history`: grades change by what people decide, and nothing runs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.gradebook import Gradebook


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, course_root: Path) -> None:
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.setenv("GRADER_BY", "ta1")
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)


def said(*words: object, code: int = 0) -> str:
    result: Result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
    assert result.exit_code == code, result.output
    return result.output


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def attention(assignment: Assignment) -> str:
    return next(spec.id for spec in assignment.checks if spec.component == "Attention")


def another_course(tmp_path: Path, course_root: Path, old: str, new: str) -> Path:
    """A copy of the course whose assignment.toml is another one."""
    root = tmp_path / "course"
    for path in (course_root / "course.toml", *(course_root / "reference/vit_defects").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = root / path.relative_to(course_root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = root / "reference/vit_defects/assignment.toml"
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")
    return root


def released(out: Path, tmp_path: Path) -> None:
    """Publish, so that students have read their grades."""
    said("publish", out, "--to", tmp_path / "published", "--partial")


def written(out: Path) -> dict[Path, bytes]:
    """What people read in a results folder."""
    return {path: path.read_bytes() for path in out.rglob("*.*") if path.suffix in (".html", ".json", ".csv")}


# --- regrade --------------------------------------------------------------------------------------------


def test_regrading_tells_what_changed_for_whom(graded_class: Path, tmp_path: Path, course_root: Path) -> None:
    assert said("regrade", graded_class) == "4 submissions scored again. 0 totals changed.\n"
    course = another_course(tmp_path, course_root, "{ at = 0.80, points = 15 }", "{ at = 0.70, points = 15 }")
    output = said("regrade", graded_class, "--course", course, "--by", "ta2")
    assert output.splitlines() == [
        "400101201: 62 of 65 decided, 35 awaiting -> 65 of 65 decided, 35 awaiting",
        f"400101202: {total_before(graded_class, '400101202')} -> {now(graded_class, '400101202')}",
        "4 submissions scored again. 2 totals changed.",
    ]
    assert told(graded_class, "400101201")["total"] == 65
    assert "65" in (graded_class / "students/400101201/report.html").read_text("utf-8")


def total_before(out: Path, student: str) -> str:
    with Gradebook(out) as book:
        return f"{book.totals(student)[-2].points:g} of 65 decided, 35 awaiting"


def now(out: Path, student: str) -> str:
    return f"{told(out, student)['total']:g} of 65 decided, 35 awaiting"


def test_released_grades_do_not_fall_by_themselves(
    graded_class: Path, tmp_path: Path, course_root: Path
) -> None:
    released(graded_class, tmp_path)
    course = another_course(tmp_path, course_root, "{ at = 0.80, points = 15 }", "{ at = 0.90, points = 15 }")
    before = written(graded_class)
    output = said("regrade", graded_class, "--course", course, code=2)
    assert output.startswith(
        "error: 2 grades that were released would fall. Nothing was changed. "
        "If that is meant, add --allow-lower.\n  400101201: 62 of 65 decided, 35 awaiting -> 61 of 65"
    )
    assert before == written(graded_class)
    with Gradebook(graded_class) as book:
        assert len(book.totals("400101201")) == 1
    said("regrade", graded_class, "--course", course, "--allow-lower")
    assert told(graded_class, "400101201")["total"] == 61


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    assert said("regrade", tmp_path, code=2) == (
        f"error: {tmp_path}: there is no gradebook in it. "
        "Give the --out folder of `grader grade`, and the --gradebook if it had one.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_results_of_an_older_grader_are_named(tmp_path: Path) -> None:
    (tmp_path / "evidence/s").mkdir(parents=True)
    (tmp_path / "evidence/s/run-0001.json").write_text("{}")
    assert "holds results of an older grader" in said("regrade", tmp_path, code=2)


def test_another_assignment_is_named(graded_class: Path) -> None:
    assert "holds nothing about 'cnn', only about vit_defects." in (
        said("regrade", graded_class, "--assignment", "cnn", code=2)
    )


# --- waive ----------------------------------------------------------------------------------------------


def test_a_waiver_gives_the_points_back(graded_class: Path, assignment: Assignment) -> None:
    check = attention(assignment)
    page = graded_class / "students/400101202/report.html"
    untouched = (graded_class / "students/400101203/report.html").stat().st_mtime_ns
    assert "It is not what it should be." in page.read_text("utf-8")
    output = said("waive", graded_class, check, "--why", "The handout was wrong.")
    assert re.match(r"400101202: [\d.]+ of 65 decided, 35 awaiting -> 62 of 65 decided", output)
    assert output.endswith(f"'{check}' counts as passed for the whole class. 1 total changed.\n")
    entry = told(graded_class, "400101202")
    [finding] = [one for one in entry["findings"] if one["check"] == check]
    assert (finding["status"], finding["waived"]) == ("failed", "ta1: The handout was wrong")
    assert "It is not what it should be." not in page.read_text("utf-8")
    assert "counts as passed for the whole class (The handout was wrong)" in page.read_text("utf-8")
    assert untouched != (graded_class / "students/400101203/report.html").stat().st_mtime_ns, "its reason"
    assert said("regrade", graded_class).endswith("0 totals changed.\n")


def test_a_waiver_is_taken_back_only_where_grades_may_fall(
    graded_class: Path, assignment: Assignment, tmp_path: Path
) -> None:
    check = attention(assignment)
    said("waive", graded_class, check, "--why", "x")
    released(graded_class, tmp_path)
    undo = ("waive", graded_class, check, "--undo", "--why", "y")
    assert "A grade that was released would fall" in said(*undo, code=2)
    assert told(graded_class, "400101202")["total"] == 62
    said(*undo, "--allow-lower")
    assert told(graded_class, "400101202")["total"] < 62


def test_a_check_that_does_not_exist_is_guessed(graded_class: Path, assignment: Assignment) -> None:
    check = attention(assignment)
    assert f"Did you mean '{check}'?" in said("waive", graded_class, check + "s", "--why", "x", code=2)
    assert "--why is empty" in said("waive", graded_class, check, "--why", " ", code=2)


# --- rule -----------------------------------------------------------------------------------------------


def test_the_rule_on_missing_files(graded_class: Path, tmp_path: Path) -> None:
    assert told(graded_class, "400101204")["total"] is None
    output = said("rule", graded_class, "--all", "--why", "One missing file means no grade.")
    assert output.splitlines() == [
        "400101204: withheld, 65 decided, 35 awaiting -> 0 of 100 decided",
        "0 points for 1 of the class. 1 total changed.",
    ]
    entry = told(graded_class, "400101204")
    assert (entry["status"], entry["total"], entry["awaiting"]) == ("incomplete", 0, [])
    assert [(edit["who"], edit["old"], edit["new"]) for edit in entry["edits"]] == [("ta1", None, 0)]
    page = (graded_class / "students/400101204/report.html").read_text("utf-8")
    assert "A required file is missing: 0 points" in page
    lift = ("--lift", "--why", "By mail.", "--by", "ta2")
    output = said("rule", graded_class, "--missing", "400101204", *lift)
    assert "0 of 100 decided -> 62 of 65 decided, 35 awaiting" in output
    assert told(graded_class, "400101204")["total"] == 62
    released(graded_class, tmp_path)
    said("rule", graded_class, "--missing", "400101204", "--why", "No.", code=2)
    assert said("rule", graded_class, "--all", "--why", "No.").endswith(
        "for 0 of the class. 0 totals changed.\n"
    )


def test_the_rule_is_about_those_who_lack_a_file(graded_class: Path) -> None:
    output = said("rule", graded_class, "--missing", "400101204", "400101201", "9", "--why", "x", code=2)
    assert output == (
        "error: '400101201' is complete: no file is missing.\n"
        "'9' is neither in the gradebook nor on a class list. Grade with --roster, so that they are "
        "known.\nNothing was changed. Correct the list.\n"
    )
    assert told(graded_class, "400101204")["total"] is None
    assert "Say whom the rule is about" in said("rule", graded_class, "--why", "x", code=2)


# --- history --------------------------------------------------------------------------------------------


def test_the_history_tells_who_when_and_why(graded_class: Path, assignment: Assignment) -> None:
    check = attention(assignment)
    said("marks", "set", graded_class, "400101202", "q6", "4", "--why", "Well argued.")
    said("marks", "set", graded_class, "400101202", "q6", "5", "--why", "Seen again.", "--by", "ta2")
    said("waive", graded_class, check, "--why", "The handout was wrong.", "--by", "ta2")
    said("marks", "set", graded_class, "400101201", "q6", "1", "--why", "Somebody else.")
    first, *lines = said("history", graded_class, "400101202").splitlines()
    assert first == "400101202: 67 of 70 decided, 30 awaiting"
    assert lines[0] == "2026-01-31 12:00 UTC  run 1  ta1  examined, submission ab12"
    texts = [re.sub(r"^.{16} UTC  ", "", line) for line in lines[1:]]
    assert texts[0].startswith("total  ta1  ") and texts[0].endswith("of 65 decided, 35 awaiting (grade)")
    assert "mark   ta1  q6: 4. Well argued" in texts
    assert "mark   ta2  q6: 4 -> 5. Seen again" in texts
    assert f"waive  ta2  {check} counts as passed for the whole class. The handout was wrong" in texts
    assert f"total  ta2  67 of 70 decided, 30 awaiting (waive {check})" in texts
    assert not any("Somebody else" in text for text in texts)


def test_the_history_of_nobody(graded_class: Path) -> None:
    assert "has no evidence about '1'" in said("history", graded_class, "1", code=2)


def test_who_is_the_option_then_the_variable_then_the_login(
    graded_class: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def who() -> str:
        with Gradebook(graded_class) as book:
            return book.edits()[-1].who

    mark = ("marks", "set", graded_class, "400101201", "q6")
    said(*mark, "1", "--why", "x", "--by", "ta2")
    assert who() == "ta2"
    said(*mark, "2", "--why", "x")
    assert who() == "ta1"
    monkeypatch.delenv("GRADER_BY")
    monkeypatch.setattr("getpass.getuser", lambda: "login-name")
    said(*mark, "3", "--why", "x")
    assert who() == "login-name"


# --- claim ------------------------------------------------------------------------------------------------


def training(out: Path, student: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in told(out, student)["items"] if item["id"] == "training")
    return found


def test_a_typed_claim_far_above_the_measured_accuracy_is_listed(graded_class: Path) -> None:
    """It is what somebody wrote: a person finds it in the queue, and the points stay what was measured."""
    measured = told(graded_class, "400101201")["measurements"]["test_accuracy"]
    before = training(graded_class, "400101201")
    said("claim", graded_class, "400101201", f"{100 * measured + 4:.1f}", "--why", "page 3")
    listed = "(typed by a person)"
    assert listed not in (graded_class / "index.html").read_text(encoding="utf-8")
    far = f"{100 * measured + 6:.1f}%"
    output = said("claim", graded_class, "400101201", far, "--why", "page 4")
    assert f"{far} is claimed by 400101201. 0 totals changed." in output
    assert training(graded_class, "400101201") == before
    assert listed in (graded_class / "index.html").read_text(encoding="utf-8")
    found = told(graded_class, "400101201")["measurements"]
    assert (found["claimed_accuracy"], found["claimed_in"]) == (
        pytest.approx(measured + 0.06),
        "typed by a person",
    )
    said("claim", graded_class, "400101201", "none", "--why", "misread")
    assert listed not in (graded_class / "index.html").read_text(encoding="utf-8")
    assert "misread" in said("history", graded_class, "400101201")


@pytest.mark.parametrize("accuracy", ["good", "0.83", "120", "-3", "nan"])
def test_what_is_no_percentage_is_refused(graded_class: Path, accuracy: str) -> None:
    assert f"{accuracy}: is not an accuracy in percent" in said(
        "claim", graded_class, "--why", "x", "--", "400101201", accuracy, code=2
    )


def test_a_claim_of_nobody_is_refused(graded_class: Path) -> None:
    assert "there is no student '999'" in said("claim", graded_class, "999", "80", "--why", "x", code=2)
