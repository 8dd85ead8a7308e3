"""Images as grids of patches, and which of a model's tensors belong to the places in the grid."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from grader.kit.closeness import same

Tensor = Any
Generator = Any
MOST_TENSORS, MOST_TOGETHER = 24, 4  # that are tried, one by one and in pairs


def grids(side: int) -> list[int]:
    """How many patches may lie along a side of so many pixels: the divisors, but 1 and the side itself."""
    return [count for count in range(2, side) if side % count == 0]


def rearranged(images: Tensor, grid: int, order: Tensor) -> Tensor:
    """Images whose patches lie elsewhere.

    Args:
        images: (images, channels, side, side).
        grid: How many patches lie along a side.
        order: (grid * grid,): the old place of each patch, counted row by row.
    """
    count, channels, side, _ = images.shape
    patch = side // grid
    cut = images.reshape(count, channels, grid, patch, grid, patch).permute(0, 2, 4, 1, 3, 5)
    moved = cut.reshape(count, grid * grid, channels, patch, patch)[:, order]
    back = moved.reshape(count, grid, grid, channels, patch, patch).permute(0, 3, 1, 4, 2, 5)
    return back.reshape(count, channels, side, side)


def sees_patches(
    answer: Callable[[Tensor, Mapping[str, Tensor]], Tensor],
    state: Mapping[str, Tensor],
    images: Tensor,
    random: Generator,
) -> bool | None:
    """Whether a model answers alike when the patches of images lie elsewhere, and their positions with them.

    Args:
        answer: (images, changed parameters and buffers) -> scores, (images, classes).
        state: All parameters and buffers.
        images: (images, channels, side, side).

    Returns:
        None where the model answers otherwise each time, so that it cannot be told.
    """
    before = answer(images, {})
    if not same(answer(images, {}), before):
        return None
    for grid in grids(images.shape[-1]):
        order = elsewhere(grid * grid, random)
        moved = rearranged(images, grid, order)
        for changed in places_rearranged(state, grid, order):
            if same(answer(moved, changed), before, tolerance=1e-3):
                return True
    return False


def elsewhere(count: int, random: Generator) -> Tensor:
    """A random order in which nothing stays where it was, (count,), with at least two places."""
    import torch

    while True:
        order = torch.randperm(count, generator=random)
        if not bool((order == torch.arange(count)).any()):
            return order


def places_rearranged(state: Mapping[str, Tensor], grid: int, order: Tensor) -> Iterator[dict[str, Tensor]]:
    """What becomes of the tensors that may belong to the places of patches when these lie elsewhere.

    A tensor belongs to places if one of its axes counts them, with the class token's or without; so do as
    many tensors of one shape that are called alike but for their numbers.

    Args:
        state: Parameters and buffers by name.
        grid: How many patches lie along a side.
        order: As for `rearranged`.

    Yields:
        The tensors that change, by name; nothing at all first.
    """
    yield {}
    changes = [found for found in _changes(state, _orders(grid * grid, order)) if found]
    # what is called so is tried first; what it is called decides nothing
    changes.sort(key=lambda found: not any("pos" in name for name in found[0]))
    for found in changes[:MOST_TENSORS]:
        yield from found
    # positions of several parts, such as rows and columns beside each other, move together
    for several in itertools.combinations(changes[:MOST_TOGETHER], 2):
        for one, other in itertools.product(*several):
            yield {**one, **other}


def _orders(places: int, order: Tensor) -> dict[int, tuple[Tensor, ...]]:
    """How many there are -> the orders in which they may be: with a class token before or behind them."""
    import torch

    behind_token = torch.cat([order.new_zeros(1), order + 1])
    before_token = torch.cat([order, order.new_full((1,), places)])
    return {places: (order,), places + 1: (behind_token, before_token)}


def _changes(
    state: Mapping[str, Tensor], orders: Mapping[int, tuple[Tensor, ...]]
) -> Iterator[list[dict[str, Tensor]]]:
    """For each tensor, or several that are alike, what becomes of it in each of the orders."""
    alike: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, value in state.items():
        if value.is_floating_point():
            alike.setdefault((re.sub(r"\d+", "#", name), tuple(value.shape)), []).append(name)
            yield [
                {name: value.index_select(axis, chosen)}
                for axis, size in enumerate(value.shape)
                for chosen in orders.get(size, ())
            ]
    for names in alike.values():
        yield [
            {name: state[names[int(old)]] for name, old in zip(names, chosen, strict=True)}
            for chosen in orders.get(len(names), ())
        ]
