"""The points that students dispute: each request with its answer. It changes no points."""

from collections.abc import Iterable

from grader.domain.edit import Edit, RegradeAnswered, RegradeAsked
from grader.domain.regrade_request import RegradeRequest

Answered = tuple[RegradeAsked, RegradeAnswered | None]
"""(A request, the answer to it; None: there is none yet)."""


def answered_requests(edits: Iterable[Edit]) -> tuple[Answered, ...]:
    """All requests with their answers, in the order in which the requests were recorded.

    An answer is to the student's open request about the item: there is one at a time.

    Args:
        edits: Oldest first, of any kind; those about several students may be among them.
    """
    answered: list[Answered] = []
    waiting: dict[tuple[str | None, str], int] = {}
    for edit in edits:
        match edit:
            case RegradeAsked():
                waiting[edit.student_id, edit.target] = len(answered)
                answered.append((edit, None))
            case RegradeAnswered() if (edit.student_id, edit.target) in waiting:
                number = waiting.pop((edit.student_id, edit.target))
                answered[number] = (answered[number][0], edit)
    return tuple(answered)


def regrade_requests(edits: Iterable[Edit]) -> tuple[RegradeRequest, ...]:
    """A student's requests, in the order in which they were recorded.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    return tuple(
        RegradeRequest(asked.target, asked.why, asked.asked, asked.points)
        if answer is None
        else RegradeRequest(
            asked.target, asked.why, asked.asked, asked.points, answer.why, answer.when, answer.points
        )
        for asked, answer in answered_requests(edits)
    )
