"""How a check says that something is wrong, or that it cannot tell."""

from enum import StrEnum

from grader.domain.errors import Interruption
from grader.domain.evidence import FindingKind


class Cause(StrEnum):
    """What keeps further checks of a part from being concluded from, where that is known as a fact."""

    NOT_LOADED = "not_loaded"  # the part, or the whole file, cannot be had
    NOT_IMPLEMENTED = "not_implemented"  # the stub was not written yet
    RAISED = "raised"  # an exception at a line of the student's
    NO_TENSOR = "no_tensor"  # something else was returned
    WRONG_SHAPE = "wrong_shape"
    WRONG_TYPE = "wrong_type"  # the tensor is of whole numbers, say
    NOT_FINITE = "not_finite"
    RANDOM = "random"  # the same input gives another output each time
    NOT_CALLED = "not_called"  # what stands in the place of another part
    SIZE = "size"  # one that cannot be done


class Mismatch(Interruption, AssertionError):
    """The student's code does something else than it should.

    Args:
        message: What is wrong, in a sentence or two for the student, without hidden values.
        hint: One thing to try.
        diagnosis: The id of the mistake that was recognized, e.g. `loss_summed`; or what the grader itself
            saw, whatever the check asks for.
        where: The place in the student's file, when it is better known than the component's first line.
        cause: What kind of cause it is, where other checks of the same component fail for the same.
        look_for: Kinds of code, as in the `Look for:` of a known mistake: where one of them stands only once
            in what is judged, that line is told. It goes before the mistake's own.
        concerns: What the cause is of (a part, a line, a size); empty: the component. Two mismatches of one
            component with the same cause that concern the same are one: the later is folded under the first.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        diagnosis: str | FindingKind | None = None,
        where: str = "",
        look_for: str = "",
        cause: Cause | None = None,
        concerns: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnosis = diagnosis
        self.where = where
        self.look_for = look_for
        self.cause = cause
        self.concerns = concerns

    def again(self) -> "Mismatch":
        """The same, for another check that looks at what was found once."""
        return Mismatch(
            self.message,
            hint=self.hint,
            diagnosis=self.diagnosis,
            where=self.where,
            look_for=self.look_for,
            cause=self.cause,
            concerns=self.concerns,
        )


class Undecided(Interruption):
    """The check cannot tell: a person must look. Never a pass and never a zero."""
