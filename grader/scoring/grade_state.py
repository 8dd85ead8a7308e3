"""How far a grade is: what is still open about it, and whether a person has looked over it as it is now.

A review is about the points that the person saw. Once any of them differ, or another submission counts, it
no longer stands, and says what differs. It changes no points.
"""

from collections.abc import Sequence

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Reviewed
from grader.domain.grade_review import GradeReview, GradeState, ReviewedPoints
from grader.domain.score import GradeStatus, Score
from grader.scoring.decided_by_people import line_points


def what_is_open(score: Score) -> tuple[str, ...]:
    """What a person, or another run, still decides about a score, a clause each."""
    if score.status is GradeStatus.REFUSED and score.lacks_total:
        return ()  # it does not hold up anybody else's grade
    if score.status is GradeStatus.ENGINE_ERROR and score.lacks_total:
        return ("the grader failed: grade it again",)
    reasons = []
    if score.lacks_total:
        reasons.append("a file is missing, and `grader rule` has not said what follows")
    if score.oral is not None and score.awaits_oral:
        reasons.append(
            "the oral check was not passed, and `grader rule` has not said what follows"
            if score.oral.to_be_ruled
            else "an oral check is pending"
        )
    if score.lower is not None and not score.lower.kept:
        reasons.append("less than the student saw before, and `grader count` has not said which run counts")
    if score.awaiting:
        reasons.append(f"awaiting {', '.join(score.awaiting)}")
    if score.not_run:
        reasons.append(f"not run: {', '.join(score.not_run)}")
    if score.total is not None and score.late is not None and score.late.total_after is None:
        reasons.append("late, and nobody knows by how much")
    return tuple(reasons)


def grade_state(score: Score) -> GradeState:
    """How far a grade is. One that was released stays so, whatever changes afterwards."""
    if score.released is not None:
        return GradeState.RELEASED
    return GradeState.REVIEWED if is_reviewed(score) else GradeState.MARKING


def is_reviewed(score: Score) -> bool:
    """Whether a person has looked over exactly this grade."""
    return score.review is not None and score.review.stands


def grade_review(
    assignment: Assignment, score: Score, digest: str, edits: Sequence[Edit]
) -> GradeReview | None:
    """The last review of a grade, with what differs now; None: there is none, or it was taken back.

    Args:
        score: As it is now, without the review.
        digest: Of the submission that counts.
        edits: Those about the student, oldest first, of any kind.
    """
    last = next((edit for edit in reversed(edits) if isinstance(edit, Reviewed)), None)
    if last is None or last.withdrawn:
        return None
    return GradeReview(
        who=last.who,
        when=last.when,
        note=last.why,
        points=last.points,
        changes=_changes(assignment, score, last),
        other_work=last.digest != digest,
    )


def _changes(assignment: Assignment, score: Score, last: Reviewed) -> tuple[ReviewedPoints, ...]:
    """The points that differ, in the rubric's order: of an item in parts, the parts that do."""
    before, now = dict(last.lines), dict(line_points(score))
    differing = [target for target in (*now, *before) if before.get(target) != now.get(target)]
    whole = {target.partition(".")[0] for target in differing if "." in target}
    order = {target: number for number, target in enumerate(assignment.mark_targets())}
    targets = sorted(
        dict.fromkeys(target for target in differing if target not in whole),
        key=lambda target: order.get(target, len(order)),
    )
    changes = tuple(ReviewedPoints(target, before.get(target), now.get(target)) for target in targets)
    if not changes and last.points != score.final:  # lateness, or a ruling
        return (ReviewedPoints("", last.points, score.final),)
    return changes
