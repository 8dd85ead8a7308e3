"""How a layer over tokens behaves, in words: what to say when no known mistake explains its output.

Every function tries the smallest inputs first, so that the sentence names the smallest that fails.
"""

from collections.abc import Callable, Iterator
from typing import Any

Tensor = Any
Layer = Callable[[Tensor], Tensor]
Made = Callable[..., Tensor]

SIZES = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3))  # (images, tokens), the smallest first


def oddities(layer: Layer, made: Made, dim: int, *, mixes_tokens: bool) -> Iterator[str]:
    """Sentences about what a layer does that it should not, each with the smallest input that shows it.

    Args:
        layer: Maps (batch, tokens, dim) to the same shape, in evaluation mode.
        made: A fresh tensor of a shape.
        mixes_tokens: Whether tokens of one image may influence each other.
    """
    for images, tokens in SIZES:
        x = made(images, tokens, dim)
        before = layer(x)
        if _far(layer(x), before):
            yield f"Two calls with the same {_input(images, tokens)} give different outputs."
            return
        found = _influence(layer, x, before, mixes_tokens)
        if found:
            yield found
            return
        if tokens > 1 and mixes_tokens and _far(layer(x.flip(1)).flip(1), before):
            yield (
                f"For {_input(images, tokens)}, exchanging the tokens does more than exchange their outputs: "
                "the layer treats a token by its place."
            )
            return


def _influence(layer: Layer, x: Tensor, before: Tensor, mixes_tokens: bool) -> str:
    """A token whose output changes with something that it must not see, in a sentence; else nothing."""
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
                    f"{token} changes: it does not look at all tokens."
                )
    return ""


def _far(actual: Tensor, expected: Tensor) -> bool:
    return bool((actual - expected).abs().max() > 1e-4 * (1 + float(expected.abs().max())))


def _input(images: int, tokens: int) -> str:
    return f"{images} image{'s' * (images > 1)} of {tokens} token{'s' * (tokens > 1)}"
