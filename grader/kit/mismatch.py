"""How a check says that something is wrong, or that it cannot tell."""

from grader.domain.errors import Interruption
from grader.domain.evidence import FindingKind


class Mismatch(Interruption, AssertionError):
    """The student's code does something else than it should.

    Args:
        message: What is wrong, in a sentence or two for the student, without hidden values.
        hint: One thing to try.
        diagnosis: The id of the mistake that was recognized, e.g. `missing_scale`; or what the grader itself
            saw, whatever the check asks for.
        where: The place in the student's file, when it is better known than the component's first line.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        diagnosis: str | FindingKind | None = None,
        where: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnosis = diagnosis
        self.where = where


class Undecided(Interruption):
    """The check cannot tell: a person must look. Never a pass and never a zero."""
