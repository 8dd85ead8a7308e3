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


class ProbedDropout:
    """The dropout of a component that is put to the proof at any rate.

    Attributes:
        fault: What is wrong with it, in a word of `dropout_fault`; None: nothing.
    """

    def __init__(self, reference, build, x, *, names, part):
        """Find out what is wrong.

        Args:
            build: rate -> the component, which returns tensors of x's shape.
            x: What it is called with.
            names: What the names of the mistakes of its dropout begin with: `attention_dropout_`.
            part: What the names of its part's other mistakes begin with: `attention_`.
        """
        self._reference, self._build, self._x, self._names, self._part = reference, build, x, names, part

        def repeated(rate):
            component = build(rate)
            component.randomize(0.3)  # a last layer may begin with zeros: what is dropped of them is not seen
            return lambda x, **how: component.repeated(x, shape=tuple(x.shape), **how)

        self.fault = dropout_fault(repeated, x)

    def require_rest(self):
        """Name why each output is another in evaluation mode: nothing else can be judged.

        Raises:
            Mismatch: It is.
        """
        if self.fault == "in_evaluation":
            raise self._reference.named(f"{self._names}in_evaluation")
        if self.fault == "unsteady":
            raise self._unsteady()

    def require(self):
        """Name what is wrong; not outputs that change without dropout, which the first check names.

        Raises:
            Mismatch: Something is.
        """
        if self.fault == "unsteady":
            found = self._unsteady()
            found.diagnosis = None
            raise found
        if self.fault:
            raise self._reference.named(self._names + self.fault)

    def _unsteady(self):
        """What to raise about outputs that change in evaluation mode without dropout."""
        one, other = self._build(0.0), self._build(0.0)
        other.set_weights(one.weights())
        if same(one(self._x), other(self._x)):
            found = (
                "keeps_state"  # the first calls agree: nothing is drawn, and only what came before differs
            )
        else:
            found = "is_random" if one.parameters else "layers_in_forward"
        mismatch = self._reference.named(self._part + found)
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
