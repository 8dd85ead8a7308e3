"""What an oral check does to a score: the grade is held, and nobody loses points by it alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from grader.domain.assignment_rules import CourseLateDays, LatePolicy, Resubmission
from grader.domain.edit import Edit, OrallyChecked, PickedForOral, Ruled
from grader.domain.evidence import Evidence
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.domain.score import GradeStatus, Score
from grader.domain.submission import Role
from grader.domain.submission_result import Attempt, History
from grader.publishing.releases import grade_of
from grader.scoring import score
from tests.scoring.test_lateness import ASSIGNMENT, DUE, EVIDENCE, mark

STUDENT = EVIDENCE.student_id
CAME = replace(EVIDENCE, submission_digest="ab12", received_at=DUE)
DRAWN = OralFlag(OralReason.DRAWN)
PICKED = PickedForOral(who="ta1", when=DUE, why="", student_id=STUDENT, reasons=(DRAWN,), seed="s", share=0.2)
BASE = (mark(18), PICKED)


def said(outcome: OralOutcome | None, digest: str = "ab12") -> OrallyChecked:
    return OrallyChecked(
        who="ta2", when=DUE, why="Asked.", student_id=STUDENT, outcome=outcome, digest=digest
    )


def ruled(*, counts: bool, digest: str = "ab12") -> Ruled:
    return Ruled(who="head", when=DUE, why="Agreed.", student_id=STUDENT, counts=counts, digest=digest)


def scored(*edits: Edit, evidence: Evidence = CAME) -> Score:
    return score(ASSIGNMENT, evidence, edits=[*BASE, *edits])


PASSED, FAILED, ABSENT, EXCUSED = map(said, OralOutcome)


def test_a_picked_student_has_no_total_and_keeps_every_point() -> None:
    held, free = scored(), score(ASSIGNMENT, CAME, edits=[mark(18)])
    assert (held.total, held.final, held.awaits_oral) == (None, None, True)
    assert held.lines == free.lines and held.decided == free.decided
    assert held.oral is not None and held.oral.withheld == free.total == 18
    assert held.oral.reasons == (DRAWN,) and held.oral.to_be_asked
    assert held.status is GradeStatus.GRADED and not held.lacks_total and held.gradable
    grade = grade_of(held)
    assert (grade.points, grade.waits, grade.reason) == (None, True, "an oral check is pending")


@pytest.mark.parametrize("outcome", [PASSED, EXCUSED])
def test_whoever_passed_or_is_excused_has_the_same_score_as_before(outcome: OrallyChecked) -> None:
    free = score(ASSIGNMENT, CAME, edits=[mark(18)])
    settled = scored(outcome)
    assert replace(settled, oral=None) == free
    assert settled.oral is not None and settled.oral.outcome is outcome.outcome and not settled.awaits_oral


@pytest.mark.parametrize("outcome", [FAILED, ABSENT])
def test_not_passed_takes_no_points_and_holds_until_somebody_rules(outcome: OrallyChecked) -> None:
    open_score = scored(outcome)
    assert open_score.total is None and open_score.oral is not None and open_score.oral.to_be_ruled
    assert "grader rule" in grade_of(open_score).reason
    none, all_of_it = scored(outcome, ruled(counts=False)), scored(outcome, ruled(counts=True))
    assert (none.total, none.final, none.closed, none.awaiting) == (0, 0, True, ())
    assert none.reason == "After an oral check: 0 points (Agreed)."
    assert (all_of_it.total, all_of_it.closed) == (18, False)
    assert [(edit.who, edit.old, edit.new) for edit in none.edits] == [("head", None, 0)]
    assert grade_of(none).points == 0 and grade_of(all_of_it).points == 18


def test_the_last_ruling_counts_and_only_one_that_came_after_the_outcome() -> None:
    early = scored(ruled(counts=False), FAILED)
    assert early.total is None, "nobody had been asked when that was ruled"
    assert scored(ruled(counts=False)).total is None, "nothing is ruled before the outcome"
    assert scored(FAILED, ruled(counts=False), ruled(counts=True)).total == 18
    assert scored(FAILED, ruled(counts=False, digest="other")).total is None


def test_an_outcome_is_withdrawn_or_followed_by_another() -> None:
    assert scored(PASSED, said(None)).awaits_oral
    assert scored(FAILED, ruled(counts=False), said(None)).total is None, "the ruling falls with it"
    assert scored(FAILED, ruled(counts=False), PASSED).total == 18, "a second conversation"
    assert scored(ABSENT, FAILED, ruled(counts=False)).total == 0
    again = scored(FAILED, ruled(counts=False), FAILED)
    assert again.awaits_oral, "whoever fails again is ruled on again"


def test_after_a_new_submission_the_check_is_open_again_unless_nobody_asks() -> None:
    new = replace(CAME, submission_digest="cd34")
    asked = scored(PASSED, evidence=new)
    assert asked.awaits_oral and asked.oral is not None and asked.oral.asked_before
    assert not scored(PASSED, said(OralOutcome.PASSED, "cd34"), evidence=new).awaits_oral
    assert not scored(EXCUSED, evidence=new).awaits_oral


def test_a_missing_file_is_another_matter() -> None:
    """Both hold the grade, and a ruling after the outcome settles both."""
    lacking = replace(CAME, missing=(Role.REPORT,))
    both = scored(evidence=lacking)
    assert both.lacks_total and both.awaits_oral
    lifted = scored(ruled(counts=True), evidence=lacking)
    assert lifted.total is None and not lifted.lacks_total, "the file is settled; the check is not"
    assert scored(ruled(counts=True), PASSED, evidence=lacking).total == 18
    assert scored(PASSED, evidence=lacking).lacks_total
    zero = scored(ruled(counts=False), evidence=lacking)
    assert (zero.total, zero.awaits_oral) == (0, False), "a check could not change it"
    after = scored(FAILED, ruled(counts=False), evidence=lacking)
    assert (after.total, len(after.edits)) == (0, 1)
    lifted_after = scored(FAILED, ruled(counts=True), evidence=lacking)
    assert (lifted_after.total, len(lifted_after.edits)) == (18, 1), "one ruling, told once"


def test_lateness_is_known_meanwhile_and_says_nothing_of_the_total() -> None:
    late = replace(CAME, received_at=DUE + timedelta(hours=30))
    free, held = score(ASSIGNMENT, late, edits=[mark(18)]).late, scored(evidence=late).late
    assert free is not None and held is not None
    assert (held.penalty, held.days, held.total_after) == (free.penalty, free.days, None)
    assert "so 18 become 8" in free.reason and "18" not in held.reason
    tokens = replace(ASSIGNMENT, late=LatePolicy(points_per_day=5), course_late_days=CourseLateDays(3))
    record = score(tokens, late, edits=[*BASE]).late
    assert record is not None and record.tokens_used == 2, "other assignments need not wait for it"


def test_a_resubmission_is_held_as_a_whole_and_a_ruling_leaves_nothing_of_it() -> None:
    assignment = replace(ASSIGNMENT, resubmission=Resubmission(regains=0.5, until=DUE + timedelta(days=9)))
    later = replace(CAME, submission_digest="cd34", received_at=DUE + timedelta(days=2))
    history = History((Attempt(CAME, 1, 1), Attempt(later, 2, 2)))
    marks = [replace(mark(10), run=1), replace(mark(18), run=2)]

    def total(*edits: Edit) -> float | None:
        return score(assignment, later, edits=[*marks, *edits], history=history).total

    about = "cd34"
    assert total() == 14
    assert total(PICKED) is None
    assert total(PICKED, said(OralOutcome.PASSED, about)) == 14
    assert total(PICKED, said(OralOutcome.FAILED, about), ruled(counts=False, digest=about)) == 0
    assert total(PICKED, said(OralOutcome.FAILED, about), ruled(counts=True, digest=about)) == 14


def test_several_entries_are_one_check_with_all_reasons() -> None:
    similar = OralFlag(OralReason.SIMILAR, "98 % of their own code, with 400101205.")
    more = replace(PICKED, reasons=(similar, DRAWN), seed="", share=None)
    check = scored(more).oral
    assert check is not None and check.reasons == (DRAWN, similar)
    assert scored(PASSED, more).total == 18, "a further reason does not undo an outcome"


def test_others_are_not_held() -> None:
    other = replace(PICKED, student_id="400101299")
    assert score(ASSIGNMENT, CAME, edits=[mark(18), other]).oral is None


def test_a_ruling_that_is_taken_back_holds_the_grade_again() -> None:
    taken_back = replace(ruled(counts=False), withdrawn=True)
    assert scored(FAILED, ruled(counts=False)).total == 0
    held = scored(FAILED, ruled(counts=False), taken_back)
    assert held.total is None and held.awaits_oral and held.oral is not None and held.oral.to_be_ruled
    assert scored(FAILED, ruled(counts=False), taken_back, ruled(counts=True)).total == 18
