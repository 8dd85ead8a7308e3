"""What a stand-in computes, on the judge's side."""

from collections.abc import Callable
from typing import Any

from grader.domain.standin_behavior import StandIn

Tensor = Any


def answer(behavior: StandIn, instance: int, x: Tensor) -> Tensor:
    """What the instance of a stand-in makes of x, (batch, ...); it rolls the second axis."""
    y = x.roll(behavior.roll, dims=1) if behavior.roll else x
    index = max(instance, 0)
    return y * _of(behavior.scale, index) + _of(behavior.shift, index)


def stand_in_class(behavior: StandIn) -> type[Any]:
    """A class for a mistake's namespace, which behaves as the worker's stand-in does."""
    from torch import nn

    made = iter(range(10_000))

    class Replacement(nn.Module):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            self.instance = next(made)
            values = (*args, *kwargs.values())
            inner = next((value for value in values if isinstance(value, nn.Module)), None)
            self.inner: Callable[..., Any] | None = inner if behavior.wraps else None

        def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
            y = answer(behavior, self.instance, x)
            if behavior.heads and any(value is True for value in (*args, *kwargs.values())):
                return y, x.new_full((len(x), behavior.heads, x.shape[1], x.shape[1]), 1 / x.shape[1])
            return y if self.inner is None else self.inner(y, **kwargs)

    return Replacement


def _of(values: tuple[float, ...], index: int) -> float:
    return values[min(index, len(values) - 1)]
