"""Who has looked over which grades: recorded, taken back, and no longer true once points change."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.decisions.decision_words import review_state
from grader.decisions.marking import NewMark, set_mark
from grader.decisions.reviewing import review_grades, withdraw_reviews
from grader.domain.edit import Marked, Reviewed, Waived
from grader.domain.errors import UsageError
from grader.domain.grade_review import GradeState
from grader.domain.score import Score
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.publishing.releases import note_releases
from grader.results.current_state import current_results
from grader.results.session import ClassSession, SessionRequest, class_session
from grader.scoring.grade_state import grade_state, is_reviewed

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
FIRST, SECOND, THIRD, WITHOUT_REPORT = (f"40010120{number}" for number in range(1, 5))


@pytest.fixture
def session(graded_class: Path, course_root: Path) -> Iterator[ClassSession]:
    """The first two are marked and nothing of them is open."""
    request = SessionRequest(graded_class, "head", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=None) as opened:
        by_person = [item for item in opened.assignment.rubric if item.by_person]
        marks = [
            Marked(who="ta1", when=NOW, why="Read.", student_id=student, target=target, points=1.0)
            for student in (FIRST, SECOND)
            for item in by_person
            for target in item.targets
        ]
        opened.revised("marks", decide=lambda *_: marks)
        yield opened


def scores(session: ClassSession) -> dict[str, Score]:
    _, results = current_results(session.assignment, session.book, session.out)
    return {one.score.student_id: one.score for one in results}


def test_what_is_open_is_left_out_and_nothing_else_changes(session: ClassSession) -> None:
    before = {student: score.final for student, score in scores(session).items()}
    done = review_grades(session, None, note="Read all of it.")
    assert done.reviewed == (FIRST, SECOND) and set(done.open) == {THIRD, WITHOUT_REPORT}
    assert "awaiting" in done.open[THIRD] and "a file is missing" in done.open[WITHOUT_REPORT]
    now = scores(session)
    assert {student: score.final for student, score in now.items()} == before
    assert done.revision.changes == ()
    states = [grade_state(now[one]) for one in (FIRST, THIRD)]
    assert states == [GradeState.REVIEWED, GradeState.MARKING]
    assert review_state(now[FIRST]) == "reviewed by head on 2026-02-01"
    again = review_grades(session, None)
    assert (again.reviewed, again.before) == ((), 2), "what stands is not recorded twice"


def test_named_students_must_all_be_ready(session: ClassSession) -> None:
    rows = len(session.book.edits())
    with pytest.raises(UsageError, match=r"still open. Nothing was recorded\.\n  400101203: awaiting"):
        review_grades(session, {FIRST, THIRD}, all_of_them=True)
    with pytest.raises(UsageError, match="None of these students has a result"):
        review_grades(session, {"400101299"})
    assert len(session.book.edits()) == rows


def test_a_changed_mark_ends_it_and_is_named(session: ClassSession) -> None:
    review_grades(session, {FIRST})
    set_mark(session, NewMark(FIRST, "q6", 3.0, "Part b counts."))
    score = scores(session)[FIRST]
    assert not is_reviewed(score) and grade_state(score) is GradeState.MARKING
    assert score.review is not None and score.review.differences == "q6: 1 → 3"
    assert review_state(score) == "marked; reviewed by head on 2026-02-01; since then q6: 1 → 3"
    set_mark(session, NewMark(FIRST, "q6", 1.0, "It does not."))
    assert is_reviewed(scores(session)[FIRST]), "it is the grade that was looked over"
    set_mark(session, NewMark(FIRST, "q6", 3.0, "It does."))
    review_grades(session, {FIRST})
    assert is_reviewed(scores(session)[FIRST])


def test_a_part_of_an_item_is_named_and_not_the_item(session: ClassSession) -> None:
    review_grades(session, {FIRST})
    part = next(target for target in session.assignment.mark_targets() if target.startswith("q10."))
    set_mark(session, NewMark(FIRST, part, 0.5, "Half of it."))
    review = scores(session)[FIRST].review
    assert review is not None and [change.target for change in review.changes] == [part]


def test_a_check_that_is_waived_ends_it_for_those_who_gain(session: ClassSession) -> None:
    review_grades(session, None)
    check = next(spec.id for spec in session.assignment.checks if spec.component == "Attention")
    waiver = Waived(who="head", when=NOW, why="It was wrong.", check=check)
    session.revised("waive", decide=lambda *_: [waiver])
    now = scores(session)
    assert is_reviewed(now[FIRST]) and not is_reviewed(now[SECOND])


def test_another_submission_ends_it_whatever_it_earns(
    session: ClassSession, graded_class: Path, class_evidence: object
) -> None:
    review_grades(session, {FIRST})
    evidence = replace(session.book.evidence(FIRST), submission_digest="cd34")
    with Gradebook(graded_class) as book:
        Keeper(session.assignment, book, graded_class, "ta1").kept(evidence, {}, NOW)
    review = scores(session)[FIRST].review
    assert review is not None and review.other_work and not review.changes
    assert review.differences == "another submission counts"


def test_lateness_alone_is_a_change_of_the_grade(session: ClassSession) -> None:
    review_grades(session, {FIRST})
    due = replace(
        session.assignment,
        deadline=NOW - timedelta(days=2),
        late=replace(session.assignment.late, points_per_day=2.0),
    )
    late = replace(session.book.evidence(FIRST), received_at=NOW, submission_digest="ab12")
    Keeper(due, session.book, session.out, "ta1").kept(late, {}, NOW)
    review = scores(replace(session, assignment=due))[FIRST].review
    assert review is not None and [change.target for change in review.changes] == [""]
    assert review.differences.startswith("the grade: ")


def test_it_is_taken_back_by_a_new_entry_with_a_reason(session: ClassSession) -> None:
    review_grades(session, None)
    rows = len(session.book.edits())
    with pytest.raises(UsageError, match="--why is empty"):
        withdraw_reviews(session, {FIRST}, why=" ")
    withdraw_reviews(session, {FIRST}, why="I confused two students.")
    assert len(session.book.edits()) == rows + 1, "nothing is removed"
    now = scores(session)
    assert now[FIRST].review is None and is_reviewed(now[SECOND])
    assert review_state(now[FIRST]) == "marked, not reviewed"
    with pytest.raises(UsageError, match="nothing to take back"):
        withdraw_reviews(session, {FIRST}, why="Again.")
    review_grades(session, {FIRST})
    last = [edit for edit in session.book.edits() if isinstance(edit, Reviewed)][-1]
    assert not last.withdrawn and is_reviewed(scores(session)[FIRST])


def test_what_was_released_stays_so_and_what_changed_is_told(session: ClassSession) -> None:
    review_grades(session, {FIRST})
    snapshot, results = current_results(session.assignment, session.book, session.out)
    final = scores(session)[FIRST].final
    note_releases(
        session.book, snapshot, results, {FIRST: final}, way="publish", who="head", when=NOW, out=session.out
    )
    assert grade_state(scores(session)[FIRST]) is GradeState.RELEASED
    set_mark(session, NewMark(FIRST, "q6", 3.0, "Part b counts."))
    words = review_state(scores(session)[FIRST])
    assert words.startswith("released on 2026-02-01: ") and ", now " in words
    assert words.endswith("since then q6: 1 → 3")
