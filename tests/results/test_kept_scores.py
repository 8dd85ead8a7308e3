"""A decision about one student scores nobody else again, and every file says what it would say anyway."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.corrections import waive_check
from grader.decisions.marking import NewMark, set_mark
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.files.stored_records import validator
from grader.gradebook import Gradebook
from grader.results import kept_scores as module
from grader.results.class_pages import write_pages
from grader.results.current_state import results_now
from grader.results.kept_scores import FILE
from grader.results.session import ClassSession, SessionRequest, class_session

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STUDENT, OTHER = "400101201", "400101202"
CLASS_FILES = ("index.html", "scores.csv", "results.json", FILE)


@pytest.fixture
def session(graded_class: Path, course_root: Path) -> Iterator[ClassSession]:
    request = SessionRequest(graded_class, "ta1", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=lambda _: None) as opened:
        yield opened


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The students who were scored so far."""
    students: list[str] = []
    real = module.score

    def counting(assignment: Assignment, evidence: Evidence, **given: Any) -> Score:
        students.append(evidence.student_id)
        return real(assignment, evidence, **given)

    monkeypatch.setattr(module, "score", counting)
    return students


def mark(session: ClassSession, points: float = 3, student: str = STUDENT) -> None:
    set_mark(session, NewMark(student, "q6", points, "Read."))


def files(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in CLASS_FILES}


def test_one_mark_scores_one_student(session: ClassSession, scored: list[str]) -> None:
    mark(session)  # the first writes what is kept
    scored.clear()
    mark(session, 4)
    mark(session, 2, OTHER)
    assert scored == [STUDENT, OTHER]


def test_the_files_are_those_of_a_class_that_is_scored_whole(
    session: ClassSession, graded_class: Path
) -> None:
    mark(session)
    mark(session, 4, OTHER)
    waive_check(session, session.assignment.checks[0].id, why="It was wrong.")
    mark(session, 5)
    quick = files(graded_class)
    (graded_class / FILE).unlink()
    write_pages(session.assignment, session.book, graded_class, NOW, only_changed=False)
    assert files(graded_class) == quick


def test_what_is_about_everybody_scores_everybody(session: ClassSession, scored: list[str]) -> None:
    mark(session)
    scored.clear()
    waive_check(session, session.assignment.checks[0].id, why="It was wrong.")
    assert set(scored) == set(session.book.students())


def test_another_rubric_scores_everybody(session: ClassSession, scored: list[str]) -> None:
    mark(session)
    scored.clear()
    rubric = tuple(replace(item, points=item.points + 1) for item in session.assignment.rubric)
    mark(replace(session, assignment=replace(session.assignment, rubric=rubric)), 4)
    assert set(scored) == set(session.book.students())


def test_another_version_of_the_grader_scores_everybody(
    session: ClassSession, scored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark(session)
    scored.clear()
    monkeypatch.setattr(module, "_code_digest", lambda: "another")
    mark(session, 4)
    assert set(scored) == set(session.book.students())


def test_whoever_is_graded_again_is_scored_again(
    session: ClassSession, scored: list[str], class_evidence: Callable[..., Any]
) -> None:
    mark(session)
    failed = [spec.id for spec in session.assignment.checks]
    session.book.record(class_evidence(OTHER, failed=failed), {})
    scored.clear()
    mark(session, 4)
    assert sorted(set(scored)) == [STUDENT, OTHER]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]\n",
        b'{"student_id": "400101202", "key": 1}\n',
        "shorter",
        "no score",
    ],
)
def test_a_file_of_scores_that_is_not_whole_is_made_anew(
    session: ClassSession, graded_class: Path, content: bytes | str
) -> None:
    mark(session)
    whole = (graded_class / FILE).read_bytes()
    if content == "shorter":
        content = whole[: len(whole) // 2]
    elif content == "no score":
        lines = [{**json.loads(line), "score": None} for line in whole.splitlines()]
        content = "\n".join(map(json.dumps, lines)).encode()
    (graded_class / FILE).write_bytes(bytes(content))
    mark(session, 4)
    quick = files(graded_class)
    write_pages(session.assignment, session.book, graded_class, NOW, only_changed=False)
    assert files(graded_class) == quick


def test_scores_of_another_book_do_not_count(
    session: ClassSession, graded_class: Path, class_evidence: Callable[..., Any], tmp_path: Path
) -> None:
    """The same student, run, submission and second, and other findings."""
    mark(session)
    failed = [spec.id for spec in session.assignment.checks]
    url = f"sqlite:///{tmp_path}/another.sqlite"
    with Gradebook(graded_class, url, assignment_id=session.assignment.id) as another:
        for student in session.book.students():
            another.record(class_evidence(student, failed=failed), {})
        moved = replace(session, book=another)
        mark(moved, 4)
        fresh = {
            one.score.student_id: one.score for one in results_now(session.assignment, another.snapshot())
        }
    document = json.loads((graded_class / "results.json").read_text("utf-8"))
    told = {one["student_id"]: one["total"] for one in document["submissions"]}
    assert told == {student: score.total for student, score in fresh.items()}


def test_a_score_is_kept_exactly(graded_class: Path, assignment: Assignment, session: ClassSession) -> None:
    waive_check(session, assignment.checks[0].id, why="It was wrong.")
    mark(session)
    for result in results_now(assignment, session.book.snapshot()):
        kept = module.kept_scores(graded_class)[result.score.student_id]
        assert kept.score == result.score
        assert validator(Score).dump_python(kept.score) == validator(Score).dump_python(result.score)
