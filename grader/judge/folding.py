"""Folding: which findings of a submission have their cause in another one.

It goes by declarations of the checks, and by facts that the judge saw itself: the same kind of cause, of the
same thing, in the same component. Where nothing is known a finding stands by itself. It changes what is
shown: `grader.scoring` gives the same points without it. `examination` decides which checks are skipped
because of a cause.

Tests: tests/judge/test_folding.py
"""

from dataclasses import replace

from grader.domain.assignment import CheckSpec
from grader.domain.evidence import Blame, Finding, Status
from grader.kit import Cause, Mismatch

Shared = tuple[str, Cause, str]  # a component, what kind of cause, and what it is of


class Folding:
    """What failed so far by the student's doing, so that what fails later for the same cause is folded.

    A check may declare which checks have the cause of its failure. Beyond that only facts count: the judge
    itself saw the same kind of cause, of the same thing, in the same component. A mistake that was recognized
    is a cause of its own, unless its check declares another.
    """

    def __init__(self) -> None:
        self._cause_of: dict[str, str] = {}  # check that did not pass -> the one that has its cause
        self._shared: dict[str, Shared] = {}  # check -> what the judge saw
        self._first: dict[Shared, str] = {}

    def declared(self, spec: CheckSpec) -> str | None:
        """The check that has the cause if this one fails, by what it declares; None: it has its own."""
        return next((self._cause_of[check] for check in spec.because if check in self._cause_of), None)

    def cause_of(self, check: str) -> str:
        """The check that has the cause of one that did not pass; itself where it is folded under none."""
        return self._cause_of.get(check, check)

    def says_nothing_new(self, spec: CheckSpec, error: BaseException | None) -> bool:
        """Whether a check fails for the very cause that was seen in one that it declares."""
        seen = _shared(spec, error)
        return seen is not None and seen in [self._shared.get(check) for check in spec.because]

    def folded(self, spec: CheckSpec, found: Finding, error: BaseException | None) -> Finding:
        """The finding, folded if its cause is another one's, and noted for those to come.

        Args:
            error: With which the check ended.
        """
        lost = found.status in (Status.FAILED, Status.SKIPPED) and found.blame is Blame.STUDENT
        if not lost:
            return found
        shared = _shared(spec, error) if found.status is Status.FAILED else None
        cause = found.because or self.declared(spec)
        if cause is None and shared in self._first and found.diagnosis is None:
            cause = self._cause_of[self._first[shared]]
        self._cause_of[spec.id] = cause or spec.id
        if shared is not None:
            self._shared[spec.id] = shared
            self._first.setdefault(shared, spec.id)
        return replace(found, because=cause)


def _shared(spec: CheckSpec, error: BaseException | None) -> Shared | None:
    """By what another failure of the same cause would be known; None where nothing is known of the cause."""
    if not isinstance(error, Mismatch) or error.cause is None:
        return None
    return spec.component, error.cause, error.concerns or spec.component
