"""Whether dropout acts in training only, at the rate that is asked for; what else makes outputs change."""

import torch

from grader.kit import Cause, same


def dropout_fault(built, x):
    """What is wrong with a component's dropout, in a word; None: nothing.

    It is `ignored`, `in_evaluation`, `rate_fixed` or `share_kept`; `unsteady` if the output changes from call
    to call in evaluation mode without any dropout, so that nothing is known of it.

    Args:
        built: rate -> the component with that dropout, the same weights each time or not; what is called with
            `x` and `times` gives the outputs of so many calls, with `train` in training mode.
        x: What it is called with.
    """
    off, half = built(0.0), built(0.5)
    if not same(*half(x, times=2)):
        return "in_evaluation" if same(*off(x, times=2)) else "unsteady"
    if same(*half(x, times=2, train=True)):
        return "ignored"
    most, least = noise(built(0.8), x), noise(built(0.1), x)
    if 4 * most < least:
        return "share_kept"
    if not same(*off(x, times=2, train=True)) or most < 2 * least:
        return "rate_fixed"
    return None


def noise(component, x):
    """The variance of the output in training, relative to its size.

    Training is compared with itself, not with evaluation: a batch normalization is another function there.
    """
    outputs = torch.stack(list(component(x, times=5, train=True)))
    [evaluated] = component(x, times=1)
    return float(outputs.var(dim=0).mean()) / max(float(evaluated.pow(2).mean()), 1e-12)


def unsteady(reference, built, x, begins):
    """What to raise about a component whose output in evaluation mode changes without dropout.

    Args:
        built: The component as a function of nothing, with any weights.
        begins: What the names of its part's mistakes begin with: `attention_`.
    """
    one, other = built(), built()
    other.set_weights(one.weights())
    if same(one(x), other(x)):
        found = "keeps_state"  # the first calls agree: nothing is drawn, and only what came before differs
    else:
        found = "is_random" if one.parameters else "layers_in_forward"
    mismatch = reference.named(begins + found)
    mismatch.cause = Cause.RANDOM
    return mismatch


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
