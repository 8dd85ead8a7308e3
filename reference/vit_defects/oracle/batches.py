"""Gradients, where one that is cut may be zero; of one image, whose axis squeeze() takes off as well."""

from dataclasses import replace

import torch

from grader.kit import Cause, Mismatch, same


def gradients_of_one(component, x, cotangent):
    """The component's gradients for a batch of one image, (1, tokens, dim).

    Raises:
        Mismatch: As for a call. That the batch's axis is lost is named if it is kept for two images.
    """
    try:
        return gradients_that_arrive(component, x, cotangent)
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


def gradients_that_arrive(component, x, cotangent):
    """The component's gradients; a parameter that the output changes with has received none if it is zero."""
    found = component.gradients(x, cotangent)
    return replace(found, missing=(*found.missing, *_cut(component, x, found)))


def cut_rows(component, x, found):
    """The matrices of which some rows change the output, and have a gradient of zeros.

    For layers without units that rest, as those of a ReLU do.
    """
    weights = component.weights()
    for name, gradient in found.parameters.items():
        rows = (gradient == 0).all(dim=-1) if gradient.ndim == 2 else gradient.new_zeros(1, dtype=bool)
        if not rows.any():
            continue
        component.set_weights({name: weights[name] + rows[:, None] * _uneven(weights[name])})
        has_effect = not same(component(x), found.output)
        component.set_weights({name: weights[name]})
        if has_effect:
            yield name


def _uneven(value):
    """Other numbers in each place: a normalization would take away the same one."""
    return torch.linspace(-1, 1, value.numel()).view(value.shape) ** 2


def _cut(component, x, found):
    """The parameters with a gradient of zeros that the output changes with."""
    weights = component.weights()
    for name, gradient in found.parameters.items():
        if gradient.any():
            continue
        component.set_weights({name: weights[name] + _uneven(weights[name])})
        has_effect = not same(component(x), found.output)
        component.set_weights({name: weights[name]})
        if has_effect:
            yield name
