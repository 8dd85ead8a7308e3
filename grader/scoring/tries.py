"""Whether a student sees what hidden checks found, before the deadline: the rule of `[tries]`.

The first submissions before the deadline get this feedback, as many as the rule says; the others get it when
grades are released, as does whatever comes after the deadline. Where the times come from makes no
difference: a gradebook has them, and so has the metadata of another service. It never decides what a page
leaves out (`reports.student.withheld_feedback` does).
"""

from collections.abc import Sequence

from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import Tries
from grader.domain.edit import Edit
from grader.domain.evidence import Evidence
from grader.domain.several_attempts import FeedbackTry, SubmissionTimes
from grader.domain.submission_result import History
from grader.scoring.lateness import arrival


def feedback_try(rule: Tries, times: SubmissionTimes) -> FeedbackTry:
    """Whether a submission gets feedback on hidden checks before grades are released.

    Args:
        times: When it came, when the student's earlier ones came, and the student's deadline. What came after
            the deadline used no try.
    """
    before = sum(moment <= times.due for moment in times.earlier)
    number = before + 1
    if times.submitted_at > times.due:
        reason = "It came after the deadline: hidden checks are shown when grades are released."
        return FeedbackTry(False, 0, rule.feedback, 0, times.due, reason)
    if number <= rule.feedback:
        left = rule.feedback - number
        reason = f"Try {number} of {rule.feedback} with feedback on hidden checks, {left} left."
        return FeedbackTry(True, number, rule.feedback, left, times.due, reason)
    if not rule.feedback:
        reason = "Hidden checks are shown when grades are released."
    else:
        reason = (
            f"None of the {rule.feedback} tries with feedback on hidden checks is left: "
            "what they found is shown when grades are released."
        )
    return FeedbackTry(False, number, rule.feedback, 0, times.due, reason)


def own_try(
    assignment: Assignment, evidence: Evidence, edits: Sequence[Edit], history: History
) -> FeedbackTry | None:
    """Which try a submission is among those in the gradebook; None where the assignment has no such rule.

    Where nothing tells when an attempt came, it came when it was graded.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    due = arrival(evidence, edits).due(assignment.deadline)
    if assignment.tries is None or due is None or evidence.absent:
        return None
    own = evidence.came_at
    run = history.first_run(evidence)
    earlier = []
    for attempt in history.attempts:
        came = attempt.evidence.came_at
        is_before = came < own or (came == own and (run is None or attempt.first_run < run))
        if attempt.digest != evidence.submission_digest and is_before:
            earlier.append(came)
    return feedback_try(assignment.tries, SubmissionTimes(own, tuple(earlier), due))
