"""Weights that were read from a student's component, in the mistakes' classes.

A mistake derives from the solution's class and keeps its attribute names; here is where they are used.
"""

import torch
from torch import nn
from torch.nn import functional as F

from grader.kit import AffineFake, affine_fake_class


def with_weights(wrong, parts):
    """The wrong Attention with a student's weights in one reading of them."""
    weight = torch.cat([part.flatten(0, 1) for part in (parts.q, parts.k, parts.v)])
    bias = torch.cat([part.flatten() for part in (parts.q_bias, parts.k_bias, parts.v_bias)])
    wrong.to_qkv = GivenLinear(weight, bias)
    if parts.out is not None:
        wrong.to_out = GivenLinear(parts.out.flatten(1), parts.out_bias)
    return wrong


def wrong_attentions(reference, mistake, x, readings, **sizes):
    """What a wrong Attention makes of x under every reading of the student's weights."""
    if readings:
        wrong = reference.wrong(mistake, x.shape[-1], **sizes).eval()
        usual = wrong.to_out  # a reading without an output projection leaves it as the mistake made it
        for parts in readings:
            wrong.to_out = usual
            yield applied(with_weights(wrong, parts), x)


def wrong_prenorms(reference, mistake, x, weights, inner):
    """What a wrong PreNorm around `inner` makes of x under every reading of the student's weights."""
    vectors = [value for value in weights.values() if value.numel() == x.shape[-1]][:6]
    gains = [*vectors, torch.ones(x.shape[-1])]
    for gain in gains:
        for bias in [*vectors, torch.zeros(x.shape[-1])]:
            wrong = reference.wrong(mistake, x.shape[-1], affine_fake_class(inner)()).eval()
            wrong.norm.weight = nn.Parameter(gain.flatten())
            wrong.norm.bias = nn.Parameter(bias.flatten())
            yield applied(wrong, x)


def wrong_transformer(reference, mistake, x, depth, sizes, fakes):
    """What a wrong Transformer makes of x, (batch, tokens, dim).

    Args:
        sizes: heads, dim_head and mlp_dim of the student's.
        fakes: The classes of its parts, or the behavior of fakes, by name.
    """
    parts = {
        name: affine_fake_class(part) if isinstance(part, AffineFake) else part
        for name, part in fakes.items()
    }
    with reference.replaced(mistake, parts):
        return applied(reference.wrong(mistake, x.shape[-1], depth, **sizes).eval(), x)


class GivenLinear(nn.Module):
    """A linear layer with given weights, (out, in) and (out,); nn.Linear would initialize its own first."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x):
        """Map (..., in) to (..., out)."""
        return F.linear(x, self.weight, self.bias)


def applied(module, x):
    """The module's output without gradients, or an empty tensor when its shapes do not fit."""
    with torch.no_grad():
        try:
            return module(x)
        except (RuntimeError, ValueError, IndexError):
            return x.new_empty(0)
