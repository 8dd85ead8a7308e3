"""`grader review`: how far grades are by section, reviews, and what a release says or demands of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from tests.cli.test_oral_command import NOW
from tests.cli.test_requests_command import said
from tests.copied_assignment import copied_assignment

FIRST, SECOND, THIRD = "400101201", "400101202", "400101203"
WORKSHEET = "Identifier,Full name,ID number,Grade,Maximum Grade,Last modified (grade)\n" + "".join(
    f"Participant {number},S,{student},,100.00,-\n"
    for number, student in enumerate((FIRST, SECOND, THIRD), 17)
)


@pytest.fixture
def course(tmp_path: Path, course_root: Path, assignment: Assignment, monkeypatch: Any) -> Path:
    """A course with two sections."""
    folder = tmp_path / "course"
    copied_assignment(assignment.folder, folder)
    text = (course_root / "course.toml").read_text("utf-8")
    (folder / "course.toml").write_text(text + '\n[people]\nstudents = "students.csv"\n', "utf-8")
    rows = f"student_id,section\n{FIRST},A\n{SECOND},A\n{THIRD},B\n"
    (folder / "students.csv").write_text(rows, "utf-8")
    monkeypatch.setenv("GRADER_COURSE", str(folder))
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    return folder


@pytest.fixture
def out(tmp_path: Path, course: Path, assignment: Assignment, class_evidence: Callable[..., Any]) -> Path:
    """Three students; the first two are marked."""
    folder = tmp_path / "results"
    with Gradebook(folder, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, folder, "ta1")
        for student in (FIRST, SECOND, THIRD):
            keeper.kept(class_evidence(student), {}, NOW)
        marks = [
            Marked(who="ta1", when=NOW, why="Read.", student_id=student, target=target, points=1.0)
            for student in (FIRST, SECOND)
            for item in assignment.rubric
            if item.by_person
            for target in item.targets
        ]
        assert book.append(marks, [], after=book.snapshot().state)
    said("regrade", folder)
    return folder


def demand(course: Path, assignment: Assignment) -> None:
    toml = course / "reference" / assignment.id / "assignment.toml"
    toml.write_text(toml.read_text("utf-8") + "\n[review]\nrequired = true\n", "utf-8")


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def test_states_by_section(out: Path, tmp_path: Path) -> None:
    states = said("review", out)
    assert "Section A: 2 grades: 2 being marked, 0 reviewed, 0 released" in states
    assert (
        f"Section B: 1 grade: 1 being marked, 0 reviewed, 0 released\n  {THIRD}  marking; awaiting" in states
    )
    assert "2 grades reviewed." in said("review", out, "--section", "A")
    said("publish", out, "--to", tmp_path / "published", "--section", "A")
    said("marks", "set", out, SECOND, "q6", "2", "--why", "Part b counts.")
    states = said("review", out)
    assert "Section A: 2 grades: 0 being marked, 0 reviewed, 2 released" in states
    assert f"{SECOND}  released on " in states and "since then q6: 1 → 2" in states
    assert f"{FIRST}  " not in states, "nothing is to be said about it"


def test_whoever_can_be_reviewed_is_and_the_others_are_named(out: Path) -> None:
    done = said("review", out, "--all", "--why", "Read all of it.")
    assert f"{THIRD}: left out: awaiting" in done and "2 grades reviewed, 1 left out." in done
    review = told(out, FIRST)["review"]
    assert (review["who"], review["note"], review["stands"]) == ("head", "Read all of it.", True)
    assert told(out, THIRD)["review"] is None
    assert "<b>2</b> reviewed" in (out / "index.html").read_text("utf-8")
    assert "0 grades reviewed, 2 had been before, 1 left out." in said("review", out, "--all")
    assert "looked over" in said("history", out, FIRST)
    refused = said("review", out, "--only", f"{FIRST},{THIRD}", code=2)
    assert "Nothing was recorded." in refused and f"{THIRD}: awaiting" in refused


def test_a_mark_after_the_review_is_told_on_every_page_of_staff(out: Path) -> None:
    assert "reviewed</li>" not in (out / "index.html").read_text("utf-8"), "nobody reviews this class yet"
    said("review", out, "--section", "A")
    said("marks", "set", out, FIRST, "q6", "2", "--why", "Part b counts.")
    page = (out / "index.html").read_text("utf-8")
    assert "Changed since it was reviewed" in page and "Since its review, q6: 1 → 2." in page
    assert "<b>1</b> reviewed" in page
    review = told(out, FIRST)["review"]
    assert not review["stands"] and review["changes"] == [{"target": "q6", "before": 1.0, "after": 2.0}]
    assert "Since its review" not in (out / "students" / FIRST / "report.html").read_text("utf-8")


def test_it_is_taken_back_with_a_reason(out: Path) -> None:
    said("review", out, "--section", "A")
    assert "--why is empty" in said("review", out, "--only", FIRST, "--withdraw", code=2)
    withdraw = ("review", out, "--only", FIRST, "--withdraw")
    assert "1 review taken back." in said(*withdraw, "--why", "I confused two students.")
    assert told(out, FIRST)["review"] is None
    history = said("history", out, FIRST)
    assert "taken back. I confused two students" in history


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--all", "--section", "A"), "each say whose grades"),
        (("--withdraw", "--why", "x"), "whose reviews are taken back"),
        (("--why", "x"), "is a note on a review"),
        (("--section", "C"), "nobody is in the section 'C'"),
        (("--only", "400101299"), "there is no student '400101299'"),
    ],
)
def test_options_that_say_nothing_clear_are_refused(out: Path, words: tuple[str, ...], fault: str) -> None:
    assert fault in said("review", out, *words, code=2)


# --- release ---------------------------------------------------------------------------------------------


def test_a_release_tells_what_was_not_reviewed_once_anything_was(out: Path, tmp_path: Path) -> None:
    worksheet = tmp_path / "Grades.csv"
    worksheet.write_text(WORKSHEET, "utf-8")
    export = ("export", "moodle-worksheet", out, "--into", worksheet, "--partial")
    assert "Not reviewed" not in said("publish", out, "--to", tmp_path / "one", "--only", f"{FIRST},{SECOND}")
    assert "Not reviewed" not in said(*export)
    said("review", out, "--only", FIRST)
    told_so = "Not reviewed: 1 of 2 grades. See `grader review`."
    both = ("--only", f"{FIRST},{SECOND}")
    assert told_so in said("publish", out, "--to", tmp_path / "two", *both)
    assert told_so in said(*export)
    said("review", out, "--only", SECOND)
    assert "Not reviewed" not in said("publish", out, "--to", tmp_path / "three", *both)
    said("marks", "set", out, SECOND, "q6", "2", "--why", "Part b counts.")
    changed = said("publish", out, "--to", tmp_path / "four", *both)
    assert f"Not reviewed: 1 of 2 grades ({SECOND}: changed since)." in changed


def test_a_course_may_demand_it(out: Path, course: Path, assignment: Assignment, tmp_path: Path) -> None:
    demand(course, assignment)
    said("regrade", out)
    page = (out / "index.html").read_text("utf-8")
    assert "Nobody has reviewed the grade" in page and "<b>0</b> reviewed" in page
    publish = ("publish", out, "--to", tmp_path / "published", "--section", "A")
    refused = said(*publish, code=2)
    assert "Not ready to hand out: Nobody has reviewed the grade." in refused
    worksheet = tmp_path / "Grades.csv"
    worksheet.write_text(WORKSHEET, "utf-8")
    export = ("export", "moodle-worksheet", out, "--into", worksheet)
    refused = said(*export, code=2)
    assert f"{FIRST}: nobody has reviewed it (`grader review`)" in refused
    said("review", out, "--section", "A")
    said("marks", "set", out, SECOND, "q6", "2", "--why", "Part b counts.")
    assert f"{SECOND}: changed since it was reviewed" in said(*export, code=2)
    done = said(*export, "--partial")
    filled = (out / "exports" / worksheet.name).read_text("utf-8")
    assert f"{FIRST},1," not in done and filled.count(",-\n") >= 2
    said("review", out, "--section", "A")
    assert "the pages of 2 students" in said(*publish)


def test_partial_pages_hold_only_what_was_reviewed_where_a_course_demands_it(
    out: Path, course: Path, assignment: Assignment, tmp_path: Path
) -> None:
    demand(course, assignment)
    said("regrade", out)
    publish = ("publish", out, "--to", tmp_path / "published", "--partial")
    assert "Nobody has reviewed these grades as they are" in said(*publish, code=2)
    said("review", out, "--section", "A")
    said("marks", "set", out, SECOND, "q6", "2", "--why", "Part b counts.")
    done = said(*publish)
    assert "the pages of 1 students" in done and f"{SECOND} and {THIRD}: left out until" in done
    assert [path.name for path in (tmp_path / "published/students").iterdir()] == [FIRST]
    said("review", out, "--only", SECOND)
    assert f"{SECOND}: is new: " in said(*publish, "--update")
    before = (tmp_path / f"published/students/{SECOND}/report.html").read_bytes()
    said("marks", "set", out, SECOND, "q6", "3", "--why", "So does part c.")
    assert f"{SECOND} and {THIRD}: left out until" in said(*publish, "--update")
    assert (tmp_path / f"published/students/{SECOND}/report.html").read_bytes() == before


def test_a_course_that_says_something_else_is_told(out: Path, course: Path, assignment: Assignment) -> None:
    toml = course / "reference" / assignment.id / "assignment.toml"
    toml.write_text(toml.read_text("utf-8") + '\n[review]\nrequired = "perhaps"\n', "utf-8")
    assert "required" in said("review", out, code=2)
