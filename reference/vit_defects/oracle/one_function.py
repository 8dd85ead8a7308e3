"""Whether a part computes in a training what it computes where it is looked at."""

import torch

from grader.kit import Mismatch, same

MANY = 33  # inputs of a batch: more than a check hands over elsewhere


def require_one_function(student, component, x, at_rate=None):
    """Fail a part that computes something else in training mode, with gradients, or for a large batch.

    Nothing is said of what is random in training, which is dropout's, or of a batch normalization.

    Args:
        component: A part without dropout.
        x: What it is called with; its first axis is the batch.
        at_rate: rate -> the part with that dropout. One that drops all at rate 0 and nothing at rate 1 takes
            the rate for the share that is kept, which another check says.

    Raises:
        Mismatch: It does.
    """
    if any("running_mean" in name for name in component.weights()):
        return
    y = component(x)
    in_training = component(x, train=True)
    if (
        not same(in_training, y)
        and same(component(x, train=True), in_training)
        and not (at_rate and _keeps_all(at_rate(1.0), x))
    ):
        raise Mismatch(
            f"Without dropout, {component.name} gives another output in training mode than in evaluation "
            "mode.",
            hint="Only dropout depends on the mode, and it does so by itself.",
            look_for="training",
        )
    found = component.gradients(x, torch.ones_like(y))
    if not same(found.output, y):
        raise Mismatch(
            f"{component.name} gives another output where gradients are computed, as they are in training.",
            look_for="is_grad_enabled() | requires_grad",
        )
    many = student.tensor(MANY, *x.shape[1:])
    if not same(component(many)[:2], component(many[:2]), tolerance=1e-3):
        raise Mismatch(
            f"What {component.name} makes of the first of {MANY} inputs depends on the others in the batch.",
            hint="The batch's axis stays by itself, however long it is.",
        )


def _keeps_all(component, x):
    """Whether nothing is dropped in training."""
    component.randomize()
    return same(component(x, train=True), component(x))
