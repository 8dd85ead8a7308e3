"""The class that follows its gradebook says what a new reading says, whatever was added, and reads little."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from grader.decisions.corrections import choose_run
from grader.decisions.marking import NewMark, set_mark
from grader.decisions.undoing import person_decisions, undo
from grader.domain.assignment_rules import Resubmission
from grader.domain.evidence import Evidence
from grader.gradebook import Gradebook, row_records
from grader.gradebook import gradebook as gradebook_module
from grader.gradebook import records as record_module
from grader.grading.result_writer import Keeper
from grader.reports.whole_class.class_overview import Overview
from grader.reports.whole_class.similarity_record import FILE
from grader.results import followed_class
from grader.results.followed_class import FollowedClass
from grader.results.session import ClassSession
from tests.decisions.test_undoing import DECISIONS, NOW, OTHER, STUDENT
from tests.decisions.test_undoing import session as session  # the fixture


def read_anew(session: ClassSession) -> Overview:
    return FollowedClass(session.book, session.out).overview(session.assignment)


def graded_again(session: ClassSession, evidence: Evidence) -> None:
    Keeper(session.assignment, session.book, session.out, "ta1", allow_lower=True).kept(evidence, {}, NOW)


def test_it_says_what_a_new_reading_says_after_each_decision(
    session: ClassSession, class_evidence: Callable[..., Any]
) -> None:
    session = replace(
        session, assignment=replace(session.assignment, resubmission=Resubmission(0.5, days=30.0))
    )
    session.revised("regrade", allow_lower=True)
    followed = FollowedClass(session.book, session.out)
    failed = [session.assignment.checks[0].id]
    came = {"received_at": NOW - timedelta(hours=1)}
    again = class_evidence(OTHER, failed=failed, **came)

    def step(name: str, change: Callable[[], Any]) -> None:
        before = followed.overview(session.assignment)
        change()
        now = followed.overview(session.assignment)
        assert now != before, f"{name} shows"
        assert now == read_anew(session), name

    mark = NewMark(STUDENT, "q6", 3.0, why="x")
    step("a mark", lambda: set_mark(session, mark))
    step("a run", lambda: graded_again(session, replace(again, submission_digest="other")))
    step("another run", lambda: choose_run(session, OTHER, 1, why="The first was graded."))
    step("a new student", lambda: graded_again(session, class_evidence("400101288", **came)))
    for name, decide in DECISIONS.items():
        if name != "run":  # that of the only one changes nothing
            step(name, lambda decide=decide: decide(session))  # type: ignore[misc]
    for one in person_decisions(session.book)[:1]:
        step("an undo", lambda one=one: undo(session, one.number, why="No."))  # type: ignore[misc]
    other = replace(session.assignment, remarks=())
    assert followed.overview(other) == FollowedClass(session.book, session.out).overview(other)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS)
def test_a_decision_about_it_is_that_about_the_class_read_anew(
    session: ClassSession, decide: Callable[[ClassSession], Any]
) -> None:
    session.revised("regrade", allow_lower=True)
    followed = FollowedClass(session.book, session.out)
    shown: list[Any] = []

    def review(changes: Any, edits: Any) -> bool:
        shown.append((tuple(changes), tuple(edits)))
        return False

    def step() -> None:
        """The same decision, tried out both ways."""
        for known in (None, followed):
            decide(replace(session, review=review, followed=known))
        assert shown[-1] == shown[-2]

    step()
    session.revised("regrade", allow_lower=True)  # adds totals alone, if any
    set_mark(session, NewMark(OTHER, "q6", 3.0, why="x"))
    step()
    decide(replace(session, followed=followed))
    recorded = session.book.snapshot(attempts=session.assignment.compares_attempts)
    assert followed.now(session.assignment).snapshot == recorded
    assert (shown[-1][1] or not recorded.edits) and session.book.edits()


def test_late_days_that_were_used_elsewhere_meanwhile_are_seen(session: ClassSession) -> None:
    followed = FollowedClass(session.book, session.out)
    assert followed.now(session.assignment).snapshot.rows.late_days == {}
    evidence = replace(followed.overview(session.assignment).results[0][0], assignment_id="another")
    total = session.book.totals(STUDENT)[-1]
    session.book.record(evidence, {}, total=replace(total, late_days_used=2))
    assert followed.now(session.assignment).snapshot.rows.late_days == {STUDENT: {"another": 2}}


def test_only_what_was_added_is_read_and_only_who_changed_is_scored(
    session: ClassSession, monkeypatch: pytest.MonkeyPatch, class_evidence: Callable[..., Any]
) -> None:
    followed = FollowedClass(session.book, session.out)
    session.revised("regrade", allow_lower=True)
    followed.overview(session.assignment)
    looked_at: list[str] = []
    read: list[str] = []
    cases, read_evidence = followed_class.cases, record_module.read_evidence
    monkeypatch.setattr(
        followed_class,
        "cases",
        lambda *of: looked_at.append(of[1].student_id) or cases(*of),  # type: ignore[func-returns-value]
    )
    for module in (gradebook_module, row_records):
        monkeypatch.setattr(
            module,
            "read_evidence",
            lambda row: read.append(row.student_id) or read_evidence(row),  # type: ignore[func-returns-value]
        )
    mark = NewMark(STUDENT, "q6", 3.0, why="x")
    with Gradebook(session.out) as another:
        set_mark(replace(session, book=another), mark)
    read.clear()
    followed.overview(session.assignment)
    assert (looked_at, read) == ([STUDENT], [])
    graded_again(session, replace(class_evidence(OTHER), submission_digest="other"))
    read.clear()
    followed.overview(session.assignment)
    assert (looked_at, read) == ([STUDENT, OTHER], [OTHER])
    followed.overview(session.assignment)
    assert (looked_at, read) == ([STUDENT, OTHER], [OTHER])


def test_a_comparison_that_came_since_is_seen(session: ClassSession) -> None:
    followed = FollowedClass(session.book, session.out)
    assert followed.overview(session.assignment).similarity is None
    (session.out / FILE).write_text(
        f'{{"assignment": "{session.assignment.id}", "compared_at": "2026-02-01T12:00:00Z", '
        '"submissions": 4, "threshold": 0.5, "pairs": []}',
        encoding="utf-8",
    )
    assert followed.overview(session.assignment).similarity is not None
