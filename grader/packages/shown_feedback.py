"""Whether a package shows a student what hidden checks found, and how many such tries are left.

This is the one place where a package asks that. Without a rule, hidden checks are shown when the instructor
publishes the grades. It never decides about points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.domain.assignment import Assignment


@dataclass(frozen=True)
class ShownFeedback:
    """What a student is shown at once.

    Attributes:
        hidden_checks: What hidden checks found is shown now, and not only when grades are published.
        tries_left: How many more times that will be so; None: there is no rule.
    """

    hidden_checks: bool = False
    tries_left: int | None = None


def shown_feedback(assignment: Assignment, metadata: Mapping[str, Any]) -> ShownFeedback:
    """What is shown of this submission.

    Args:
        assignment: Its rule on tries, where it has one.
        metadata: What the other grader says of the submission and of earlier ones.
    """
    return ShownFeedback()
