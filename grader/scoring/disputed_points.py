"""The points that a student disputes: each request with its answer. It changes no points."""

from collections.abc import Iterable
from dataclasses import replace

from grader.domain.edit import Edit, RegradeAnswered, RegradeAsked
from grader.domain.regrade_request import RegradeRequest


def regrade_requests(edits: Iterable[Edit]) -> tuple[RegradeRequest, ...]:
    """A student's requests, in the order in which they were recorded.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    requests: list[RegradeRequest] = []
    for edit in edits:
        match edit:
            case RegradeAsked():
                requests.append(RegradeRequest(edit.target, edit.why, edit.asked, edit.points))
            case RegradeAnswered():
                for number, request in enumerate(requests):
                    if request.target == edit.target and request.is_open:
                        requests[number] = replace(
                            request, answer=edit.why, answered=edit.when, after=edit.points
                        )
                        break
    return tuple(requests)
