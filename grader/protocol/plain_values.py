"""Small values that cross between worker and judge as they are, and what a model is made with."""

import math
from dataclasses import dataclass, field

Plain = bool | int | float | str | None

MAX_ARGUMENTS = 32  # of one construction, positional and named ones each
MAX_NUMBER = 2**53  # whole numbers stay below, where a float can hold each of them
MAX_TEXT = 200  # characters


@dataclass(frozen=True)
class ModelMade:
    """The arguments with which a model was made: plain values alone."""

    args: tuple[Plain, ...] = ()
    kwargs: dict[str, Plain] = field(default_factory=dict)

    @property
    def is_small(self) -> bool:
        """Whether there are few arguments, each within the sizes above."""
        if max(len(self.args), len(self.kwargs)) > MAX_ARGUMENTS:
            return False
        return all(map(is_small, (*self.kwargs, *self.args, *self.kwargs.values())))


@dataclass(frozen=True)
class OtherValues:
    """Values that a script is given in the place of its own, by the names of arguments.

    Attributes:
        model: Whenever it makes a model of the class that is measured.
        function: The graded function whose calls are changed.
        given: Whenever it calls that function.
    """

    model: dict[str, Plain] = field(default_factory=dict)
    function: str = ""
    given: dict[str, Plain] = field(default_factory=dict)


def is_small(value: Plain) -> bool:
    """Whether a value is within the sizes above, and finite."""
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or abs(value) < MAX_NUMBER
