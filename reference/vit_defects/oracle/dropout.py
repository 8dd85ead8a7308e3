"""Whether dropout is there, acts in training only, and at the rate that is asked for."""

from grader.kit import same


def dropout_fault(built, x):
    """What is wrong with a component's dropout: `ignored`, `in_evaluation`, `rate_fixed`, or nothing.

    Args:
        built: rate -> the component with that dropout, the same weights each time or not.
        x: What it is called with.
    """
    off, half = built(0.0), built(0.5)
    if not same(half(x), half(x)):
        return "in_evaluation"
    if same(half(x, train=True), half(x, train=True)):
        return "ignored"
    if not same(off(x, train=True), off(x)) or noise(built(0.8), x) < 2 * noise(built(0.1), x):
        return "rate_fixed"
    return None


def noise(component, x):
    """How far the output in training lies from that in evaluation, relative to its size."""
    still = component(x)
    far = sum(float((component(x, train=True) - still).pow(2).mean()) for _ in range(4)) / 4
    return far / max(float(still.pow(2).mean()), 1e-12)
