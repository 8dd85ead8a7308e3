"""Whether dropout acts: in training, at the rate that was asked for, and never in evaluation."""

from collections.abc import Callable
from typing import Any

from grader.kit.compared_results import Cause, Mismatch, same

_RANDOM = "randperm() | shuffle(), rand() | randn() | rand_like() | randn_like()"  # kinds of code


def require_dropout(built: Callable[[float], Any], x: Any, rate: str = "dropout") -> None:
    """Check that dropout acts in training, and only there, and only if it is asked for.

    Args:
        built: rate -> the part with that dropout: called with `x` and `times`, it gives so many outputs.
        x: What it is called with.
        rate: The argument that is the rate.

    Raises:
        Mismatch: It does not.
    """
    half, off = built(0.5), built(0.0)
    if not same(*half(x, times=2)):
        is_dropout = same(*off(x, times=2))
        raise Mismatch(
            "In evaluation two calls with the same input give different outputs.",
            hint="nn.Dropout is off in evaluation by itself; F.dropout needs training=self.training."
            if is_dropout
            else "Look in forward for what is drawn at random, or kept from one call to the next.",
            look_for="dropout() | Dropout()" if is_dropout else _RANDOM,
            cause=Cause.RANDOM,
        )
    if same(*half(x, times=2, train=True)):
        raise Mismatch(
            f"With {rate}=0.5, two calls in training give the same output: nothing is dropped.",
            hint=f"nn.Dropout({rate}), applied where the docstring says.",
            look_for="dropout() | Dropout(), Sequential()",
        )
    if not same(*off(x, times=2, train=True)):
        raise Mismatch(
            f"With {rate}=0, two calls in training give different outputs.",
            hint=f"Use the argument {rate} as the rate, not a number of your own.",
            look_for="dropout() | Dropout()",
        )
