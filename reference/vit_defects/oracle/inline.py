"""Blocks whose parts are written inline, proved by their weights as a whole."""

import itertools

from torch import nn

from grader.kit import Mismatch, Undecided, answer, at_rest, same, with_effect
from grader.kit.transformers import (
    attention,
    block_weights,
    inline_attentions,
    inline_feed_forwards,
    layer_norms,
    without_biases,
)

from .mistaken import wrong_attentions, wrong_transformer


def prove_inline(student, reference, built, fakes, dim, sizes):
    """Prove a Transformer whose Attention or FeedForward is written inline, by its weights as a whole.

    Args:
        built: (student, depth) -> the Transformer, with fakes of the parts that it does use.
        sizes: heads, dim_head and mlp_dim that it is built with; with dim, all different.

    Raises:
        Mismatch: It is wrong.
        Undecided: Its weights cannot be read.
    """
    one, two = built(student, 1), built(student, 2)
    x = student.tensor(2, 7, dim)
    outputs, weights, initial = [], [], [one.weights(), two.weights()]
    for transformer, began in zip((one, two), initial, strict=True):
        weights.append(without_biases(transformer.randomize(), began))
        transformer.set_weights(weights[-1])
        outputs.append(transformer(x, shape=(2, 7, dim)))
    prenorm = fakes["PreNorm"] if any(c.component == "PreNorm" for c, _ in one.calls) else None
    norm = (lambda x: answer(prenorm, 0, x)) if prenorm else (lambda x: next(layer_norms(x, {})))
    single = list(inline_blocks(one, weights[0], fakes, 0, dim, sizes))
    if not single:
        # what has no effect is not part of the computation
        weights = [with_effect(*tried) for tried in zip((one, two), (x, x), weights, strict=True)]
        single = list(inline_blocks(one, weights[0], fakes, 0, dim, sizes))
    if not single:
        name_mistake_at_rest(reference, one, x, weights[0], initial[0], fakes, sizes)
        raise Undecided("Transformer's parts are written inline, and their weights cannot be read.")
    pair = block_weights(*weights)
    one_is_right = False  # several readings may give nearly the same for one block
    for number, (attend, feed) in enumerate(single):
        if fits(outputs[0], block(x, norm, attend, feed)):
            one_is_right = True
            first, second = (
                next(
                    itertools.islice(inline_blocks(two, pair[i], fakes, i, dim, sizes), number, None),
                    None,
                )
                for i in (0, 1)
            )
            if first and second and fits(outputs[1], block(block(x, norm, *first), norm, *second)):
                return
    if one_is_right:
        raise Mismatch(
            "With depth=1 Transformer is right, with depth=2 it is not: look at how blocks are chained.",
            hint="Each block works on the output of the one before it, with weights of its own.",
            diagnosis="blocks_not_chained",
        )
    name_inline_mistake(reference, x, outputs[0], single, sizes, fakes if prenorm else {})
    raise Mismatch(
        "A block does not compute x = x + Attention(norm(x)) followed by x = x + FeedForward(norm(x)).",
        hint="Two residual connections per block, each around a normalization and the part after it.",
    )


def name_mistake_at_rest(reference, one, x, weights, initial, fakes, sizes):
    """Raise the known mistake that explains a block without some of its weights, where those do least."""
    for rest in at_rest(one, weights, initial, needed=2):
        blocks = list(inline_blocks(one, rest, fakes, 0, x.shape[-1], sizes))
        if blocks:
            y = one(x)
            prenorm = any(call.component == "PreNorm" for call, _ in one.calls)
            name_inline_mistake(reference, x, y, blocks, sizes, fakes if prenorm else {})


def inline_blocks(transformer, weights, fakes, index, dim, sizes):
    """Pairs of functions, attention and feed-forward, that one block can be made of."""
    heads, dim_head, hidden = sizes["heads"], sizes["dim_head"], sizes["mlp_dim"]
    attends = [
        Attend(parts)
        for parts in inline_attentions(weights, dim=dim, heads=heads, dim_head=dim_head, hidden=hidden)
    ]
    feeds = inline_feed_forwards(weights, dim=dim, hidden=hidden)
    if transformer.constructions("Attention"):
        attends = [lambda x: answer(fakes["Attention"], index, x)]
    if transformer.constructions("FeedForward"):
        feeds = [lambda x: answer(fakes["FeedForward"], index, x)]
    yield from itertools.product(attends, feeds)


def name_inline_mistake(reference, x, y, candidates, sizes, fakes):
    """Raise the known mistake that explains a block with inline parts, if there is one."""
    prenorm = {name: fake for name, fake in fakes.items() if name == "PreNorm"}
    for mistake in reference.mistakes_of("Transformer"):
        for attend, feed in candidates:
            parts = {"Attention": calling(attend), "FeedForward": calling(feed), **prenorm}
            if same(y, wrong_transformer(reference, mistake, x, 1, sizes, parts)):
                raise reference.named(mistake.id)
    norm = lambda x: next(layer_norms(x, {}))  # noqa: E731
    read = [(attend.parts, feed) for attend, feed in candidates if isinstance(attend, Attend)]
    heads = {name: sizes[name] for name in ("heads", "dim_head")}
    for mistake in reference.mistakes_of("Attention"):
        wrong = wrong_attentions(reference, mistake, norm(x), [parts for parts, _ in read], **heads)
        for (_, feed), change in zip(read, wrong, strict=True):
            z = x + change if change.numel() else x
            if fits(y, z + feed(norm(z))):
                raise reference.named(mistake.id)


class Attend:
    """Attention with the weights of one reading."""

    def __init__(self, parts):
        self.parts = parts

    def __call__(self, x):
        """Map (batch, tokens, dim) to the same shape."""
        return attention(x, self.parts)


def calling(function):
    """A class for a mistake's namespace whose instances compute a function."""

    class Calling(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()

        def forward(self, x, **kwargs):
            return function(x)

    return Calling


def block(x, norm, attend, feed):
    """What one block should compute."""
    x = x + attend(norm(x))
    return x + feed(norm(x))


def fits(y, z):
    """Whether y is z, or z after a last normalization."""
    return any(same(y, value) for value in (z, *layer_norms(z, {})))
