"""`grader inquiries`: what was found, the question that a person chooses, the answer, and what follows."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.analyzed_program import Note
from grader.domain.assignment import Assignment
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord, record_text
from tests.cli.test_oral_command import NOW
from tests.copied_assignment import copied_assignment

FIRST, SECOND = "400101201", "400101202"
CODE = "import torch\nexec(open('x').read())  # <script>alert(1)</script>\n"


def said(*words: object, by: str = "Marquart", code: int = 0) -> str:
    result = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader", env={"GRADER_BY": by})
    assert result.exit_code == code, result.output
    return result.output.replace("\xa0", " ")


@pytest.fixture
def out(
    tmp_path: Path, course_root: Path, assignment: Assignment, class_evidence: Any, monkeypatch: Any
) -> Path:
    """Two students with much in common; the first's code does something unusual."""
    monkeypatch.setenv("GRADER_COURSE", str(course_root))
    monkeypatch.delenv("GRADER_GRADEBOOK", raising=False)
    folder = tmp_path / "results"
    note = Note("homework.py:2: exec is used by ViT; a person should look at what it does.", ask_person=True)
    with Gradebook(folder, assignment_id=assignment.id) as book:
        keeper = Keeper(assignment, book, folder, "ta1")
        keeper.kept(class_evidence(FIRST, source={"homework.py": CODE}, notes=(note,)), {}, NOW)
        keeper.kept(class_evidence(SECOND, source={"homework.py": CODE}), {}, NOW)
    pair = PairRecord(one=FIRST, other=SECOND, before=False, says="98 % and 97 % of their own code")
    record = SimilarityRecord(
        assignment=assignment.id, compared_at=NOW, submissions=2, threshold=0.5, pairs=[pair]
    )
    (folder / "similarity.json").write_text(record_text(record), "utf-8")
    said("regrade", folder)
    return folder


def told(out: Path, student: str) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = next(one for one in document["submissions"] if one["student_id"] == student)
    return found


def report(out: Path, student: str) -> str:
    return (out / "students" / student / "report.html").read_text("utf-8")


def test_nothing_is_asked_by_itself_and_nobody_is_accused(out: Path) -> None:
    found = said("inquiries", "list", out)
    assert "No question is open." in found and f"{FIRST}  code: homework.py:2: exec is used" in found
    assert f"{SECOND}  similar: 98 % and 97 % of their own code, with {FIRST}." in found
    for student, other in ((FIRST, SECOND), (SECOND, FIRST)):
        page = report(out, student).partition("<body")[2]
        assert "Questions about your work" not in page and other not in page
        assert "in common" not in page and "similar" not in page
    assert said("inquiries", "list", out, "--open") == "No question is open.\n"


def test_from_the_question_to_what_follows(out: Path, tmp_path: Path) -> None:
    before = told(out, FIRST)["items"]
    done = said("inquiries", "ask", out, FIRST, "similar", "--line", "homework.py:2")
    assert "is asked question 1 about homework.py:2" in done and "Points stay" in done
    page = report(out, FIRST)
    assert "Questions about your work" in page and "exec(open(" in page and "<script>alert" not in page
    assert "How did you come to it" in page and "You have not answered yet" in page
    assert "You are asked a question about your work" in page
    assert SECOND not in page and "Marquart" not in page
    assert told(out, FIRST)["items"] == before, "a question takes no points"
    listed = said("inquiries", "list", out)
    assert f"{FIRST}  question 1 (similar at homework.py:2): not answered yet" in listed
    assert f"{FIRST}  similar:" not in listed and f"{FIRST}  code:" in listed, (
        "what was asked is not repeated"
    )
    queue = (out / "index.html").read_text("utf-8")
    assert "A question about the work is open" in queue and "not answered yet" in queue
    why = "It is from week 3 <script>alert(1)</script>."
    said("inquiries", "answer", out, FIRST, 1, "--why", why, "--at", "2026-02-01T10:00+00:00")
    page = report(out, FIRST)
    assert "It is from week 3" in page and "<script>alert" not in page and "You have not answered" not in page
    assert "You are asked a question" not in page, "it is answered"
    assert "answer: It is from week 3" in said("inquiries", "list", out, "--open")
    confirm = ("inquiries", "settle", out, FIRST, 1, "confirmed")
    said(*confirm, "model", "3", "--why", "The handout does not have it.")
    (inquiry,) = told(out, FIRST)["inquiries"]
    assert (inquiry["outcome"], inquiry["target"], inquiry["after"]) == ("confirmed", "model", 3)
    page = report(out, FIRST)
    assert "A person has confirmed it." in page and "→ 3 points." in page
    assert "The handout does not have it." in page
    history = said("history", out, FIRST)
    assert "asked about homework.py:2 (similar)" in history and "question 1 is confirmed, model: 3" in history
    assert told(out, SECOND)["inquiries"] == []
    said("publish", out, "--to", tmp_path / "published", "--partial")
    published = (tmp_path / "published" / "students" / FIRST / "report.html").read_text("utf-8")
    assert "A person has confirmed it." in published
    taken_back = said("inquiries", "settle", out, FIRST, 1, "none", "--why", "The handout does have it.")
    assert "note: 'model' keeps the points of the decision that was taken back" in taken_back


def test_what_is_dismissed_costs_nothing_and_can_be_taken_back(out: Path) -> None:
    before = told(out, FIRST)["items"]
    said("inquiries", "ask", out, FIRST, "code", "--line", "homework.py:2")
    settle = ("inquiries", "settle", out, FIRST, 1)
    assert "has not answered question 1" in said(*settle, "dismissed", "--why", "Fine.", code=2)
    said(*settle, "dismissed", "--why", "It is from the handout.", "--unanswered")
    page = report(out, FIRST)
    assert "It is settled: nothing follows from it." in page and "It is from the handout." in page
    assert told(out, FIRST)["items"] == before
    again = said(*settle, "none", "--why", "It is not.")
    assert "is open again" in again and "keeps the points" not in again
    assert "You have not answered yet" in report(out, FIRST)
    history = said("history", out, FIRST)
    assert "question 1 is open again. It is not" in history


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("ask", FIRST, "code"), "Say which line"),
        (("ask", FIRST, "chosen", "--line", "homework.py:1"), "The question is empty"),
        (("ask", FIRST, "code", "--line", "homework.py:1", "--question", f"Is it {SECOND}'s?"), "names 4001"),
        (("settle", FIRST, 1, "dismissed", "--why", "x"), "There is none."),
        (("settle", FIRST, 1, "confirmed", "model", "--why", "x"), "say how many"),
        (("answer", FIRST, 1, "--why", "x"), "There is none."),
    ],
)
def test_what_makes_no_sense_is_refused(out: Path, words: tuple[object, ...], fault: str) -> None:
    command, *others = words
    assert fault in said("inquiries", command, out, *others, code=2)


def test_a_report_in_persian_asks_in_persian(
    out: Path, course_root: Path, assignment: Assignment, tmp_path: Path, monkeypatch: Any
) -> None:
    folder = tmp_path / "course"
    copied_assignment(assignment.folder, folder)
    text = (course_root / "course.toml").read_text("utf-8")
    (folder / "course.toml").write_text('language = "fa"\n' + text, "utf-8")
    monkeypatch.setenv("GRADER_COURSE", str(folder))
    said("inquiries", "ask", out, FIRST, "code", "--line", "homework.py:2")
    page = report(out, FIRST)
    assert "پرسش‌هایی دربارهٔ کار شما" in page and "این خط برای چیست" in page
    assert "از شما دربارهٔ کارتان پرسشی شده است" in page and "You are asked" not in page
    assert "Questions about your work" not in page
