"""Gradients for a batch of one image, whose axis squeeze() takes off as well."""

from dataclasses import replace

from grader.kit import Cause, Mismatch, same


def gradients_of_one(component, x, cotangent):
    """The component's gradients for a batch of one image, (1, tokens, dim).

    A parameter whose gradient is zero, although the output changes with it, has received none.

    Raises:
        Mismatch: As for a call. That the batch's axis is lost is named if it is kept for two images.
    """
    try:
        found = component.gradients(x, cotangent)
        return replace(found, missing=(*found.missing, *_cut(component, x, found)))
    except Mismatch as error:
        is_lost = error.cause is Cause.WRONG_SHAPE and component(x).shape == x.shape[1:]
        if not is_lost or component(x.repeat(2, 1, 1)).shape != (2, *x.shape[1:]):
            raise
        raise Mismatch(
            f"For a batch of one image, {component.name} returns a tensor of shape (tokens, dim): the axis "
            "of the batch is lost. For two images it is kept.",
            hint="Leave squeeze() out, or name the axis that it should take.",
            diagnosis="batch_axis_squeezed",
            look_for="squeeze()",
            cause=error.cause,
            concerns=error.concerns,
        ) from None


def _cut(component, x, found):
    """The parameters with a gradient of zeros that the output changes with."""
    weights = component.weights()
    for name, gradient in found.parameters.items():
        if gradient.any():
            continue
        component.set_weights({name: weights[name] + 1})
        has_effect = not same(component(x), found.output)
        component.set_weights({name: weights[name]})
        if has_effect:
            yield name
