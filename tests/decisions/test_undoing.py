"""Decisions that are taken back by a new entry."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.corrections import (
    choose_run,
    record_claim,
    record_in_time,
    record_received,
    waive_check,
)
from grader.decisions.last_word import rule
from grader.decisions.marking import NewMark, set_mark
from grader.decisions.undoing import person_decisions, undo
from grader.decisions.upload_owner import decide_owner
from grader.domain.edit import OrallyChecked, PickedForOral, Released, Ruled
from grader.domain.errors import UsageError
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.results.class_pages import CatchUp
from grader.results.session import ClassSession, SessionRequest, class_session

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
STUDENT, OTHER, WITHOUT_REPORT = "400101201", "400101202", "400101204"


@pytest.fixture
def session(graded_class: Path, course_root: Path) -> Iterator[ClassSession]:
    notes: list[CatchUp] = []
    request = SessionRequest(graded_class, "ta1", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=notes.append) as opened:
        yield replace(opened, assignment=replace(opened.assignment, deadline=NOW - timedelta(days=2)))


def totals(session: ClassSession) -> dict[str, tuple[float | None, str]]:
    """Everybody's grade and how late it is, under the ids of now."""
    revision = session.revised("look", decide=lambda *_: (), allow_lower=True)
    return {
        result.score.student_id: (
            result.score.final,
            result.score.late.state if result.score.late else "",
        )
        for result in revision.results
    }


DECISIONS: dict[str, Callable[[ClassSession], Any]] = {
    "waive": lambda session: waive_check(session, session.assignment.checks[0].id, why="Wrong."),
    "rule": lambda session: rule(session, [WITHOUT_REPORT], why="Nothing came."),
    "lift": lambda session: rule(session, [WITHOUT_REPORT], lift=True, why="It counts."),
    "claim": lambda session: record_claim(session, STUDENT, 0.9, why="Page 3."),
    "received": lambda session: record_received(session, STUDENT, NOW, why="By mail."),
    "in time": lambda session: record_in_time(session, STUDENT, why="By mail."),
    "run": lambda session: choose_run(session, STUDENT, 1, why="The first."),
    "owner": lambda session: decide_owner(session, STUDENT, "400101299", why="She says so."),
    "nobody's": lambda session: decide_owner(session, STUDENT, OTHER, why="His.", replaces_current=True),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS)
def test_what_was_before_counts_again(session: ClassSession, decide: Callable[[ClassSession], Any]) -> None:
    session.revised("regrade", allow_lower=True)  # by the deadline
    before, rows = totals(session), len(session.book.edits())
    decide(session)
    changed = totals(session)
    [decision] = [one for one in person_decisions(session.book) if one.is_last]
    undo(session, decision.number, why="A mistake.")
    assert totals(session) == before and len(session.book.edits()) > rows, "by new entries"
    # what was taken back can be taken back
    undo(session, person_decisions(session.book)[0].number, why="It was none.")
    assert totals(session) == changed


def test_the_decision_before_counts_again(session: ClassSession) -> None:
    record_claim(session, STUDENT, 0.8, why="Page 3.")
    record_claim(session, STUDENT, 0.9, why="Page 4.")
    last, first = person_decisions(session.book)
    assert (last.is_last, first.is_last) == (True, False)
    assert (last.student_id, last.text) == (STUDENT, "claim: 0.9")
    with pytest.raises(UsageError, match="Take that back first"):
        undo(session, first.number, why="x")
    claim = undo(session, last.number, why="Page 3 is right.").score(STUDENT).claim
    assert claim is not None and claim.accuracy == 0.8


def test_a_ruling_that_was_taken_back_is_asked_for_again(session: ClassSession) -> None:
    rule(session, [WITHOUT_REPORT], why="Nothing came.")
    rule(session, [WITHOUT_REPORT], lift=True, why="It counts.")
    undo(session, person_decisions(session.book)[0].number, why="No.")
    assert totals(session)[WITHOUT_REPORT][0] == 0
    undo(session, person_decisions(session.book)[0].number, why="Yes.")
    assert (totals(session)[WITHOUT_REPORT][0] or 0) > 0


def test_marks_and_notes_of_the_grader_are_not_among_them(session: ClassSession) -> None:
    set_mark(session, NewMark(STUDENT, "q6", 4.5, "Good."))
    assert person_decisions(session.book) == ()
    with pytest.raises(UsageError, match="no such decision"):
        undo(session, 1, why="x")


def test_a_released_grade_does_not_fall_unasked(session: ClassSession) -> None:
    waived = next(spec.id for spec in session.assignment.checks if spec.component == "Attention")
    waive_check(session, waived, why="Wrong.")
    final, _ = totals(session)[OTHER]
    released = Released(who="ta1", when=NOW, why="", student_id=OTHER, way="publish", points=final)
    assert session.book.append([released], [], after=session.book.state()) is not None
    [decision] = person_decisions(session.book)
    with pytest.raises(UsageError, match="would fall"):
        undo(session, decision.number, why="Right.")
    assert undo(session, decision.number, why="Right.", allow_lower=True).changes[0].is_less


def test_the_outcome_of_an_oral_check_is_taken_back(session: ClassSession) -> None:
    said = {"who": "ta1", "when": NOW, "why": "She was asked.", "student_id": STUDENT}
    picked = PickedForOral(**said, reasons=(OralFlag(OralReason.CHOSEN),))
    digest = session.book.evidence(STUDENT).submission_digest
    checked = OrallyChecked(**said, outcome=OralOutcome.PASSED, digest=digest)
    assert session.book.append([picked, checked], [], after=session.book.state()) is not None
    [decision] = person_decisions(session.book)
    oral = undo(session, decision.number, why="Another student.").score(STUDENT).oral
    assert oral is not None and oral.outcome is None and oral.holds


def test_nothing_is_taken_back_without_a_reason(session: ClassSession) -> None:
    with pytest.raises(UsageError, match="Say why"):
        undo(session, 1, why=" ")


def test_a_review_sees_the_changes_and_decides(session: ClassSession) -> None:
    seen: list[str] = []

    def look(changes: Any, decisions: Any) -> bool:
        seen.extend(map(str, changes))
        assert [type(decision) for decision in decisions] == [Ruled]
        return False

    tried = rule(replace(session, review=look), [WITHOUT_REPORT], why="Nothing came.").revision
    assert not tried.recorded and len(seen) == len(tried.changes) == 1
    assert session.book.edits() == () and totals(session)[WITHOUT_REPORT][0] is None
    done = rule(replace(session, review=lambda *_: True), [WITHOUT_REPORT], why="Nothing came.").revision
    assert done.recorded and totals(session)[WITHOUT_REPORT][0] == 0
