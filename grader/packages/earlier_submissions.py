"""What a student's other submissions change about a result, as far as the other grader tells of them.

The rules are those of `grader.scoring`. Feedback on hidden checks needs no more than times, which the
metadata has. What needs the points of another submission, or the late days of another assignment, is left
open, with the reason, and `grader grade` decides it. It never scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import LineState, Score
from grader.domain.several_attempts import FeedbackTry, SubmissionTimes
from grader.packages.submission_metadata import moment
from grader.scoring import feedback_try
from grader.scoring.lateness import arrival, seconds_late
from grader.scoring.resubmission import When, when_it_came

REGAINED = (
    "This submission came after the deadline and another one before it. `grader grade` compares the two, and "
    "decides what counts."
)
LATE_DAYS = (
    "It came after the deadline. The late days of the course may cover that: `grader grade` counts them over "
    "all assignments."
)


@dataclass(frozen=True)
class EarlierSubmission:
    """A submission of the same student before the one that is graded.

    Attributes:
        came: When it came.
        digest: Of its files; empty where that is not known.
    """

    came: datetime
    digest: str


def earlier_submissions(metadata: Mapping[str, Any]) -> tuple[EarlierSubmission, ...]:
    """Those that were graded. One whose run was not completed showed its student nothing, and counts as none.

    Args:
        metadata: As Gradescope writes it.
    """
    told = metadata.get("previous_submissions")
    earlier = []
    for entry in told if isinstance(told, list) else ():
        if not isinstance(entry, dict) or entry.get("autograder_error") is True:
            continue
        came, results = moment(entry.get("submission_time")), entry.get("results")
        data = results.get("extra_data") if isinstance(results, dict) else None
        known = data if isinstance(data, dict) else {}
        if came is not None and known.get("status") != "not_graded":
            earlier.append(EarlierSubmission(came, str(known.get("submission_digest", ""))))
    return tuple(earlier)


def with_earlier(
    assignment: Assignment, evidence: Evidence, score: Score, earlier: Sequence[EarlierSubmission]
) -> Score:
    """The score of a submission, with what follows from the student's earlier ones.

    Args:
        score: Of the submission by itself.
    """
    others = _of_other_files(evidence, earlier)
    return replace(_opened(assignment, evidence, score, others), tries=_try(assignment, evidence, others))


def _of_other_files(
    evidence: Evidence, earlier: Sequence[EarlierSubmission]
) -> tuple[EarlierSubmission, ...]:
    """The same files again are the same submission, as they are in a gradebook."""
    by_digest: dict[str, EarlierSubmission] = {}
    for number, submission in enumerate(sorted(earlier, key=lambda one: one.came)):
        by_digest.setdefault(submission.digest or str(number), submission)
    return tuple(
        submission for digest, submission in by_digest.items() if digest != evidence.submission_digest
    )


def _try(
    assignment: Assignment, evidence: Evidence, others: Sequence[EarlierSubmission]
) -> FeedbackTry | None:
    """Which try it is; None without a rule, and where nothing tells when it came."""
    due = arrival(evidence, ()).due(assignment.deadline)
    if assignment.tries is None or due is None or evidence.received_at is None:
        return None
    times = SubmissionTimes(evidence.received_at, tuple(other.came for other in others), due)
    return feedback_try(assignment.tries, times)


def _opened(
    assignment: Assignment, evidence: Evidence, score: Score, others: Sequence[EarlierSubmission]
) -> Score:
    """The score, without what only a gradebook of the course can decide."""
    due = arrival(evidence, ()).due(assignment.deadline)
    if assignment.resubmission is not None and due is not None:
        after = when_it_came(assignment, evidence, ()) in (When.RESUBMITTED, When.TOO_LATE)
        if after and any(other.came <= due for other in others):
            return _open(score)
    late = seconds_late(assignment, arrival(evidence, ()))
    if score.late is not None and assignment.course_late_days is not None and late is not None and late > 0:
        unknown = replace(
            score.late, days=None, penalty=None, total_after=None, asked=True, reason=LATE_DAYS, tokens_used=0
        )
        return replace(score, late=unknown)
    return score


def _open(score: Score) -> Score:
    """The score without any points."""
    lines = tuple(
        line
        if line.points is None
        else replace(line, points=None, state=LineState.NOT_RUN, floor=None, components=(), reason=REGAINED)
        for line in score.lines
    )
    return replace(score, lines=lines, total=None, decided=0.0, late=None)
