"""How models and layers over tokens behave, tested from outside: oddities, receptive fields, patches.

If no known mistake explains a layer's output, it says in words what the layer does, with the smallest input
that shows it. It finds which pixels each token sees, and which tensors belong to the places of an image's
patches. It never reads weights by their names, and decides no points.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.domain.formatting import counted
from grader.kit.compared_results import same

Tensor = Any
Layer = Callable[[Tensor], Tensor]
MakeTensor = Callable[..., Tensor]

SIZES = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3))  # (images, tokens), the smallest first


def oddities(layer: Layer, made: MakeTensor, dim: int, *, mixes_tokens: bool) -> Iterator[str]:
    """Sentences about what a layer does that it should not, each with the smallest input that shows it.

    Args:
        layer: Maps (batch, tokens, dim) to the same shape, in evaluation mode.
        made: Makes a random tensor of a given shape.
        mixes_tokens: Whether tokens of one image may influence each other.
    """
    for images, tokens in SIZES:
        x = made(images, tokens, dim)
        before = layer(x)
        if _far(layer(x), before):
            yield f"Two calls with the same {_input(images, tokens)} give different outputs."
            return
        sentence = _influence(layer, x, before, mixes_tokens)
        if sentence:
            yield sentence
            return
        if tokens > 1 and mixes_tokens and _far(layer(x.flip(1)).flip(1), before):
            yield (
                f"For {_input(images, tokens)}, exchanging the tokens does more than exchange their outputs: "
                "the layer treats a token according to its position."
            )
            return


def _influence(layer: Layer, x: Tensor, before: Tensor, mixes_tokens: bool) -> str:
    """A sentence about a token whose output changes with something that it must not see; else empty."""
    images, tokens = x.shape[:2]
    for image in range(images):
        for token in range(tokens):
            changed = x.clone()
            changed[image, token] += 1.0 + changed[image, token].abs()
            moved = (layer(changed) - before).abs().amax(dim=-1) > 1e-5 * (1 + float(before.abs().max()))
            if not bool(moved.any()):
                return (
                    f"For {_input(images, tokens)}, changing token {token} of image {image} changes nothing."
                )
            for other, place in moved.nonzero().tolist():
                if other != image:
                    return (
                        f"For {_input(images, tokens)}, the output for token {place} of image {other} "
                        f"changes when token {token} of image {image} changes: information leaks across "
                        "the batch."
                    )
                if place != token and not mixes_tokens:
                    return (
                        f"For {_input(images, tokens)}, the output for token {place} changes when token "
                        f"{token} changes: every token should be treated by itself."
                    )
            if mixes_tokens and not bool(moved[image].all()):
                blind = int((~moved[image]).nonzero()[0])
                return (
                    f"For {_input(images, tokens)}, the output for token {blind} does not change when token "
                    f"{token} changes: it does not look at every token."
                )
    return ""


def _far(actual: Tensor, expected: Tensor) -> bool:
    return bool((actual - expected).abs().max() > 1e-4 * (1 + float(expected.abs().max())))


def _input(images: int, tokens: int) -> str:
    return f"{counted(images, 'image')} of {counted(tokens, 'token')}"


# --- receptive fields ------------------------------------------------------------------------------------


STEPS = (1.5, -1.5, 30.0, -30.0)  # by which a pixel is changed


@dataclass(frozen=True)
class Fields:
    """The receptive field of every token of a model: the pixels of the image that it depends on.

    Attributes:
        seen: bool (tokens, channels, height, width): whether the token changes with the pixel.
        images_apart: Whether no token depends on another image of the batch.
    """

    seen: Tensor
    images_apart: bool

    @property
    def pixels(self) -> Tensor:
        """bool (tokens, height, width): seen in any channel."""
        return self.seen.any(dim=1)

    def are_patches(self, side: int) -> bool:
        """Whether the tokens that see anything see one square of a regular grid each, all different."""
        squares = {_box(field) for field in self.pixels if field.any()}
        rows, columns = self.pixels.shape[1:]
        grid = {
            (top, top + side, left, left + side)
            for top in range(0, rows, side)
            for left in range(0, columns, side)
        }
        return squares == grid and int(self.pixels.any(dim=(1, 2)).sum()) == len(grid)

    def are_windows(self) -> bool:
        """Whether every token that sees anything sees one filled rectangle, all of them different."""
        boxes = [_box(field) for field in self.pixels if field.any()]
        return None not in boxes and len(set(boxes)) == len(boxes)

    def overlap(self) -> bool:
        """Whether some pixel is seen by several tokens."""
        return bool((self.pixels.sum(dim=0) > 1).any())


def fields(tokens: Callable[[Tensor], Tensor], image: Tensor) -> Fields:
    """The receptive fields of the tokens that a model makes of an image.

    Every number of the image is changed, one at a time, in one batch: up and down, a little and a lot. A
    convolution with ReLU may respond to only one of these.

    Args:
        tokens: Images (batch, channels, height, width) -> (batch, tokens, dim), in evaluation mode.
        image: (channels, height, width).
    """
    import torch

    count = image.numel()
    places = torch.arange(count)
    unchanged = tokens(image[None])[0]
    scale = float(unchanged.abs().max()) + 1e-6
    moved, images_apart = torch.zeros(count, len(unchanged), dtype=torch.bool), True
    for step in STEPS:
        changed = image.repeat(count + 1, 1, 1, 1).flatten(1)
        changed[places, places] += step
        outputs = tokens(changed.view(count + 1, *image.shape))
        moved |= (outputs[:-1] - outputs[-1:]).abs().amax(dim=-1) > 1e-5 * scale
        images_apart &= bool((outputs[-1] - unchanged).abs().max() < 1e-4 * scale)
    return Fields(moved.T.reshape(-1, *image.shape), images_apart)


def _box(field: Tensor) -> tuple[int, int, int, int] | None:
    """The rectangle (top, bottom, left, right) that the token sees; None if it is not exactly a rectangle."""
    rows, columns = field.any(dim=1).nonzero().flatten(), field.any(dim=0).nonzero().flatten()
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    left, right = int(columns[0]), int(columns[-1]) + 1
    return (top, bottom, left, right) if bool(field[top:bottom, left:right].all()) else None


# --- patches ---------------------------------------------------------------------------------------------


Generator = Any
MOST_TENSORS, MOST_IN_PAIRS = 24, 4  # tried one by one, and the first of them also in pairs


def grids(side: int) -> list[int]:
    """How many patches may lie along a side of this many pixels: its divisors except 1 and itself."""
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
    """Whether a model gives the same answers if the patches of images, and their positions, are rearranged.

    Args:
        answer: (images, changed parameters and buffers) -> scores, (images, classes).
        state: All parameters and buffers.
        images: (images, channels, side, side).

    Returns:
        None if the model answers differently each time, so that it cannot be decided.
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
    """A random order in which nothing stays in its place, (count,), with at least two places."""
    import torch

    while True:
        order = torch.randperm(count, generator=random)
        if not bool((order == torch.arange(count)).any()):
            return order


def places_rearranged(state: Mapping[str, Tensor], grid: int, order: Tensor) -> Iterator[dict[str, Tensor]]:
    """The tensors that may belong to the places of patches, rearranged like the patches.

    Such a tensor has an axis as long as there are places, with or without the class token. Or there are as
    many tensors as places, of one shape, with names that differ only in numbers.

    Args:
        state: Parameters and buffers by name.
        grid: How many patches lie along a side.
        order: As for `rearranged`.

    Yields:
        The tensors that change, by name; first an empty dictionary.
    """
    yield {}
    changes = [
        rearrangements for rearrangements in _changes(state, _orders(grid * grid, order)) if rearrangements
    ]
    # likely names are tried first; a name decides nothing
    changes.sort(key=lambda rearrangements: not any("pos" in name for name in rearrangements[0]))
    for rearrangements in changes[:MOST_TENSORS]:
        yield from rearrangements
    # positions may be stored in two tensors, such as rows and columns: both are rearranged at once
    for several in itertools.combinations(changes[:MOST_IN_PAIRS], 2):
        for first, second in itertools.product(*several):
            yield {**first, **second}


def _orders(places: int, order: Tensor) -> dict[int, tuple[Tensor, ...]]:
    """Length of an axis -> its possible orders: of places alone, or with a class token before or after."""
    import torch

    behind_token = torch.cat([order.new_zeros(1), order + 1])
    before_token = torch.cat([order, order.new_full((1,), places)])
    return {places: (order,), places + 1: (behind_token, before_token)}


def _changes(
    state: Mapping[str, Tensor], orders: Mapping[int, tuple[Tensor, ...]]
) -> Iterator[list[dict[str, Tensor]]]:
    """For each tensor, or group of similar ones, its rearrangement in each of the orders."""
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
