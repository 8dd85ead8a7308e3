"""Records who has looked over which grades before they are released, and takes that back.

A grade of which something is open cannot be reviewed. Reviewing again what a person has reviewed as it is
adds nothing. It changes no points; whether a grade may be released without a review is for the assignment
to say (`grader.publishing`).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from grader.decisions.corrections import stated
from grader.domain.edit import Edit, Reviewed
from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring import line_points
from grader.scoring.grade_state import is_reviewed, what_is_open


@dataclass(frozen=True)
class ReviewedGrades:
    """The outcome of reviewing.

    Attributes:
        reviewed: Whose grades were recorded as reviewed now.
        before: How many had been reviewed as they are.
        open: Student -> why the grade cannot be reviewed yet, as a clause.
    """

    reviewed: tuple[str, ...]
    before: int
    open: Mapping[str, str]
    revision: Revision


def review_grades(
    session: ClassSession, students: AbstractSet[str] | None, *, note: str = "", all_of_them: bool = False
) -> ReviewedGrades:
    """Record that the person has looked over these grades.

    Args:
        students: Whose; None: everybody's.
        note: For staff; it may be empty.
        all_of_them: Record nothing unless each of them can be reviewed.

    Raises:
        UsageError: None of these students has a result, or some cannot be reviewed although all must.
    """
    words = " ".join(printable(note).split())
    before, open_grades = 0, {}

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal before, open_grades
        scores = [score for score in _owned(results) if students is None or score.student_id in students]
        if not scores:
            raise UsageError("None of these students has a result. Nothing was recorded.")
        open_grades = {score.student_id: why for score in scores if (why := "; ".join(what_is_open(score)))}
        if all_of_them and open_grades:
            lines = [f"  {student_id}: {why}" for student_id, why in open_grades.items()]
            raise UsageError("\n".join(["Something is still open. Nothing was recorded.", *lines]))
        ready = [score for score in scores if score.student_id not in open_grades]
        before = sum(is_reviewed(score) for score in ready)
        return [
            Reviewed(
                who=session.who,
                when=session.clock(),
                why=words,
                student_id=score.student_id,
                points=score.final,
                lines=line_points(score),
                digest=snapshot.evidence[score.student_id].submission_digest,
            )
            for score in ready
            if not is_reviewed(score)
        ]

    revision = session.revised("review", decide=decide)
    reviewed = tuple(edit.student_id or "" for edit in revision.edits if isinstance(edit, Reviewed))
    return ReviewedGrades(reviewed, before, open_grades, revision)


def withdraw_reviews(session: ClassSession, students: AbstractSet[str] | None, *, why: str) -> Revision:
    """Take the reviews of these grades back, by a new entry for each.

    Args:
        students: Whose; None: everybody's.

    Raises:
        UsageError: There is no reason, or none of these grades was reviewed.
    """
    reason = stated(why, "colleagues")

    def decide(_: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        reviewed = [
            score
            for score in _owned(results)
            if score.review is not None and (students is None or score.student_id in students)
        ]
        if not reviewed:
            raise UsageError("None of these grades was reviewed, so there is nothing to take back.")
        return [
            Reviewed(
                who=session.who,
                when=session.clock(),
                why=reason,
                student_id=score.student_id,
                points=None,
                withdrawn=True,
            )
            for score in reviewed
        ]

    return session.revised("review", decide=decide)


def _owned(results: Sequence[Result]) -> list[Score]:
    """The scores of submissions whose owner is known: the others are nobody's grade."""
    return [result.score for result in results if not result.score.held]
