"""Stand-ins: what takes the place of a student's other components while one is tested alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StandIn:
    """A replacement with known behavior for one of the student's components.

    Its constructor takes anything. The i-th instance (0-based, in order of construction) computes
    `scale[i] * x.roll(roll, dims=1) + shift[i]`, over x's second axis for `roll != 0`. With `wraps`,
    it applies that to its input and hands it to the module that it was given.

    Attributes:
        scale, shift: One per instance; the last is repeated.
        parameters: How many trainable numbers each instance holds, without using them.
        heads: Called with a flag, an argument that is True, it returns a pair: its answer, and attention
            weights of so many heads, (batch, heads, n, n), each 1 / n; 0: it does not.
    """

    scale: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    roll: int = 0
    wraps: bool = False
    parameters: int = 0
    heads: int = 0
