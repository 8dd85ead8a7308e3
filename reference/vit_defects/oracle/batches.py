"""Gradients, where one that is cut may be zero; of one image, whose axis squeeze() takes off as well."""

from dataclasses import dataclass, replace

import torch
from torch.nn import functional as F

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
    """The component's gradients; the input, or a parameter, has received none if it is zero, and yet matters.

    A last layer may begin with zeros: then the output does not change with what lies before it, either. And
    outputs that change by themselves show nothing.
    """
    found = component.gradients(x, cotangent)
    is_cut = found.input is not None and not found.input.any()
    if is_cut and _is_another(component(x + _uneven(x)), component, x, found):
        found = replace(found, input=None)
    silent = [name for name, gradient in found.parameters.items() if not gradient.any()]
    cut = [name for name in silent if _has_effect(component, x, found, name)]
    return replace(found, missing=(*found.missing, *cut))


@dataclass(frozen=True)
class AttentionPaths:
    """The gradients that reach an attention's input through its scores, and through its values."""

    scores: torch.Tensor
    values: torch.Tensor


def gradients_through_parts(x, cotangent, parts):
    """The gradients of x, (batch, tokens, dim), by the part of an attention that they pass."""
    by_scores, by_values = (x.detach().clone().requires_grad_() for _ in range(2))
    q = torch.einsum("bnd,hfd->bhnf", by_scores, parts.q) + parts.q_bias[:, None]
    k = torch.einsum("bnd,hfd->bhnf", by_scores, parts.k) + parts.k_bias[:, None]
    v = torch.einsum("bnd,hfd->bhnf", by_values, parts.v) + parts.v_bias[:, None]
    mixed = F.scaled_dot_product_attention(q, k, v)
    (torch.einsum("bhnf,dhf->bnd", mixed, parts.out) * cotangent).sum().backward()
    return AttentionPaths(by_scores.grad, by_values.grad)


def cut_rows(component, x, found):
    """The matrices of which some rows change the output, and have a gradient of zeros.

    For layers without units that rest, as those of a ReLU do.
    """
    for name, gradient in found.parameters.items():
        if gradient.ndim == 2:
            rows = (gradient == 0).all(dim=-1, keepdim=True)
            if rows.any() and _has_effect(component, x, found, name, rows):
                yield name


def _has_effect(component, x, found, name, where=1):
    """Whether the output changes with a parameter that is moved, in some of its rows or in all."""
    held = component.weights()[name]
    component.set_weights({name: held + where * _uneven(held)})
    moved = component(x)
    component.set_weights({name: held})
    return _is_another(moved, component, x, found)


def _is_another(output, component, x, found):
    """Whether an output is another one than that of the component as it is, which stays what it was."""
    return not same(output, found.output) and same(component(x), found.output)


def _uneven(value):
    """Other numbers in each place: a normalization would take away the same one."""
    return torch.linspace(-1, 1, value.numel()).view(value.shape) ** 2
