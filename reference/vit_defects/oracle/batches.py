"""Batches of one image, whose axis squeeze() takes off as well."""

from grader.kit import Cause, Mismatch


def gradients_of_one(component, x, cotangent):
    """The component's gradients for a batch of one image, (1, tokens, dim).

    Raises:
        Mismatch: As for a call. That the batch's axis is lost is named if it is kept for two images.
    """
    try:
        return component.gradients(x, cotangent)
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
