"""A component's points: its share of passed checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.assignment import CheckSpec
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.domain.score import ComponentScore, rounded


@dataclass(frozen=True)
class Share:
    """A component's score.

    Attributes:
        secured: The points that it has for certain: all of them when decided, else those of the checks
            that passed.
    """

    score: ComponentScore
    secured: float


def share(component: str, maximum: float, checks: Sequence[CheckSpec], findings: Sequence[Finding]) -> Share:
    """The component's share of its points.

    Every declared check must have left exactly one finding. One that left none or two, that the grader or
    the check's author must answer for, or that was skipped for no fault of the student's leaves the
    component undecided.

    Args:
        component: Its name.
        maximum: Its points.
        checks: All checks of the assignment.
        findings: All findings about the submission.
    """
    own = [check for check in checks if check.component == component]
    if not own and not maximum:
        reason = "It is given, and no points stand for it."
        return Share(ComponentScore(component, 0.0, maximum, 0, 0, reason), 0.0)
    if not own:
        reason = f"No check judges {component}."
        return Share(ComponentScore(component, None, maximum, 0, 0, reason), 0.0)
    open_questions, passed, weight = [], 0, 0.0
    for check in own:
        left = [finding for finding in findings if finding.check == check.id]
        if question := _question(check, left):
            open_questions.append(question)
        elif left[0].status is Status.PASSED:
            passed, weight = passed + 1, weight + check.weight
    secured = rounded(maximum * weight / sum(check.weight for check in own))
    if open_questions:
        reason = " ".join(dict.fromkeys(open_questions))
        return Share(ComponentScore(component, None, maximum, passed, len(own), reason), secured)
    reason = _tally(passed, len(own))
    return Share(ComponentScore(component, secured, maximum, passed, len(own), reason), secured)


def without_points(found: Share, reason: str) -> Share:
    """The same share with no points, for a reason that outweighs its checks."""
    old = found.score
    return Share(ComponentScore(old.component, 0.0, old.maximum, old.passed, old.total, reason), 0.0)


def undecided_share(found: Share, reason: str) -> Share:
    """The same share with its points left to a person."""
    old = found.score
    told = f"{old.reason} {reason} A person decides."
    return Share(ComponentScore(old.component, None, old.maximum, old.passed, old.total, told), 0.0)


def _question(check: CheckSpec, left: Sequence[Finding]) -> str:
    """Why the check is undecided; empty when it is decided."""
    if len(left) != 1:
        return f"The check '{check.id}' left {'no finding' if not left else f'{len(left)} findings'}."
    finding = left[0]
    if finding.status is Status.PASSED:
        return ""
    if finding.status is Status.FAILED and finding.blame in (Blame.STUDENT, None):
        return ""
    if finding.status is Status.SKIPPED and finding.blame is Blame.STUDENT:
        return ""
    if finding.kind is FindingKind.UNDECIDED:
        return f"The check '{check.id}' leaves it to a person."
    whose = "a mistake in the check" if finding.blame is Blame.INSTRUCTOR else "the grader's fault"
    return f"The check '{check.id}' could not be decided ({whose})."


def _tally(passed: int, total: int) -> str:
    if passed == total:
        return "The check passed." if total == 1 else f"All {total} checks passed."
    return f"{passed} of {total} checks passed."
