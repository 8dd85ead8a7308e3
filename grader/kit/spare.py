"""Weights that a component has besides those that it needs: what it computes without them.

A spare weight must not make a component unreadable that would be judged without it: one that has no effect is
left out, and one that has is held where it does least (zero, one, as it began, the identity).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from grader.kit.closeness import same

Tensor = Any
MOST_TRIED = 24  # weights whose effect is tried: beyond, no component of the usual form is left


class Settable(Protocol):
    """A component whose weights can be set."""

    def __call__(self, x: Tensor) -> Tensor:
        """The output for an input."""

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters by name."""


def with_effect(component: Settable, x: Tensor, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights on which the output for x depends; the component holds `weights`, before and afterwards."""
    y = component(x)
    found = {}
    for number, (name, value) in enumerate(weights.items()):
        if number < MOST_TRIED:
            component.set_weights({name: value + 1 + value.abs()})
            moved = component(x)
            component.set_weights({name: value})
            if same(moved, y):
                continue
        found[name] = value
    return found


def at_rest(
    component: Settable, weights: Mapping[str, Tensor], initial: Mapping[str, Tensor], needed: int
) -> Iterator[dict[str, Tensor]]:
    """What is left of the weights when some are spare; the component holds those where they do least.

    Args:
        weights: What the component holds, before and afterwards.
        initial: What its constructor set.
        needed: How many matrices, the largest, cannot be spare together.
    """
    matrices = sorted((n for n, v in weights.items() if v.ndim > 1), key=lambda n: -weights[n].numel())
    together = [name for name in weights if name not in matrices[:needed]]
    groups = [[name] for name in list(weights)[:MOST_TRIED]]
    if len(together) > 1:
        groups.append(together)
    for names in groups:
        for rest in _rests([weights[name] for name in names], [initial[name] for name in names]):
            component.set_weights(dict(zip(names, rest, strict=True)))
            yield {name: value for name, value in weights.items() if name not in names}
        component.set_weights({name: weights[name] for name in names})


def _rests(values: list[Tensor], initial: list[Tensor]) -> Iterator[list[Tensor]]:
    """Where weights do least, the likeliest first."""
    yield [value * 0 for value in values]
    yield [value.to(held.dtype) for value, held in zip(initial, values, strict=True)]
    yield [value * 0 + 1 for value in values]
    if all(value.ndim >= 2 and value.shape[-1] == value.shape[-2] for value in values):
        import torch

        yield [torch.eye(value.shape[-1], dtype=value.dtype).expand(value.shape).clone() for value in values]
