"""Randomness of a failed part: whether the same call in evaluation mode gives another output.

It makes the last call twice again, within a time of its own. If the outputs differ the finding says only
that. Where the call cannot be repeated nothing is concluded. It never turns a pass into a failure or back:
the check decided before.

Tests: tests/judge/test_folding.py
"""

from grader.domain.assignment import CheckSpec
from grader.judge.student import Student
from grader.kit import Cause, Mismatch
from grader.protocol.link import WorkerFault


class RandomPart:
    """Makes the calls of failed checks again.

    The time for it is apart from that of the checks, and bounded: it must not cost a slow student points.
    """

    def __init__(self, seconds: float) -> None:
        """Make calls again.

        Args:
            seconds: That this may take for one submission.
        """
        self._left = seconds

    def failure(self, error: BaseException | None, student: Student, spec: CheckSpec) -> Mismatch | None:
        """That the output of the judged part is random; None where it is not, or where that is not known.

        What a check says of such a part would be true of one call alone.

        Args:
            error: With which the check ended.
        """
        recognized = isinstance(error, Mismatch) and (error.diagnosis is not None or error.cause is not None)
        if not isinstance(error, AssertionError) or recognized:
            return None
        own = [part for part in student.built if part.name == spec.component and part.last_call is not None]
        cost = 2 * own[-1].last_seconds if own else 0.0
        if not own or cost > self._left:
            return None
        self._left -= cost
        waited = student.waited
        try:
            student.allow(max(self._left, 1.0))
            random = own[-1].is_random()
        except (Mismatch, WorkerFault):
            random = False
        student.waited = waited
        if not random:
            return None
        return Mismatch(
            f"`{own[-1].label}` gives another output each time for the same input, in evaluation mode and "
            "with the same weights. Nothing that depends on its output can be told.",
            hint="Look in forward for what is drawn at random, or kept from one call to the next.",
            cause=Cause.RANDOM,
        )
