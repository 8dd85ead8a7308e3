"""Whether dropout is there, acts in training only, and at the rate that is asked for."""

import torch

from grader.kit import same


def dropout_fault(built, x):
    """What is wrong with a component's dropout: `ignored`, `in_evaluation`, `rate_fixed`, or nothing.

    Args:
        built: rate -> the component with that dropout, the same weights each time or not; what is called with
            `x` and `times` gives the outputs of so many calls, with `train` in training mode.
        x: What it is called with.
    """
    off, half = built(0.0), built(0.5)
    if not same(*half(x, times=2)):
        return "in_evaluation"
    if same(*half(x, times=2, train=True)):
        return "ignored"
    if not same(*off(x, times=2, train=True)) or noise(built(0.8), x) < 2 * noise(built(0.1), x):
        return "rate_fixed"
    return None


def noise(component, x):
    """The variance of the output in training, relative to its size.

    Training is compared with itself, not with evaluation: a batch normalization is another function there.
    """
    outputs = torch.stack(list(component(x, times=5, train=True)))
    [evaluated] = component(x, times=1)
    return float(outputs.var(dim=0).mean()) / max(float(evaluated.pow(2).mean()), 1e-12)


def drops_before_positions(drawn):
    """Whether what is left of a dropped value depends on its place, and is never zero.

    Two images agree in a value only where it is dropped in both: then the position is left, if it is added
    later.

    Args:
        drawn: The tokens of the patches of two images in several calls, (calls, 2, patches, dim).
    """
    first, second = drawn[:, None, 0], drawn[None, :, 1]
    agree = (first - second).abs() < 1e-6
    zero = agree & (first.abs() < 1e-6)
    places = agree.any(dim=(0, 1))
    return bool(places.float().mean() > 0.5) and not bool(zero.any())
