"""Attentions that are right except for the scale of their scores, or for heads that are lost."""

from dataclasses import replace

import torch

from grader.kit import same
from grader.kit.transformers import attention

LEAST, MOST = 1e-3, 30.0  # scales beyond them give the same as no scores, or as a maximum
GRID, STEPS = 48, 48


def measured_scale(x, y, readings):
    """What the scores are multiplied by if that is all that is wrong under some reading; else None."""
    for parts in readings:
        if parts.out is not None:
            scale = _best_scale(x, y, parts)
            if same(y, attention(x, parts, scale=scale)):
                return scale
    return None


def _best_scale(x, y, parts):
    """The scale whose attention is nearest to y: the best of a grid, then narrowed down by thirds."""

    def distance(power):
        return float((attention(x, parts, scale=float(2**power)) - y).abs().max())

    powers = torch.linspace(torch.tensor(LEAST).log2(), torch.tensor(MOST).log2(), GRID, dtype=torch.float64)
    step = float(powers[1] - powers[0])
    best = min(powers.tolist(), key=distance)
    low, high = best - step, best + step
    for _ in range(STEPS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if distance(left) < distance(right):
            high = right
        else:
            low = left
    return float(2 ** ((low + high) / 2))


def lost_heads(x, y, readings):
    """Whether y is the sum of what some of the heads give, and of nothing else, under some reading."""
    for parts in readings:
        if parts.out is None or y.shape != x.shape:
            continue
        each = torch.stack([_one_head(x, parts, head).flatten() for head in range(parts.out.shape[1])])
        without_bias = (y - parts.out_bias).flatten()
        arriving = torch.linalg.lstsq(each.T, without_bias[:, None]).solution[:, 0].round().clamp(0, 1)
        if 0 < int(arriving.sum()) < len(arriving) and same(arriving @ each, without_bias):
            return True
    return False


def _one_head(x, parts, head):
    """What one head adds to the output."""
    only = torch.zeros_like(parts.out)
    only[:, head] = parts.out[:, head]
    return attention(x, replace(parts, out=only, out_bias=torch.zeros_like(parts.out_bias)))
