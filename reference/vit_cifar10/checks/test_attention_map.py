"""attention_map, with a model whose attention is known."""

import numpy as np
import pytest
import torch

from grader.kit import Fake, Mismatch

pytestmark = pytest.mark.component("attention_map")


def mapped(student, weights, shape=(3, 12, 12), training=False):
    """(the map, the mode afterwards, the outcome) where these are the weights of the last block."""
    methods = {"attention": Fake.script([weights])}
    side, with_class = divmod(weights.shape[-1] ** 0.5, 1)
    sizes = {
        "image_size": shape[1],
        "patch_size": int(shape[1] // side),
        "dim": 4 * weights.shape[1],
        "depth": 1,
        "heads": weights.shape[1],
        "pool": "cls" if with_class else "mean",
    }
    like = ("VisionTransformer", sizes)  # its own members are there: `model.pool`
    fake = Fake.script([0.0], parameters={"weight": (1,)}, methods=methods, like=like)
    model = student.keep(fake, "attention_map")
    student.component(model).call("train" if training else "eval")
    outcome = student.call("attention_map", model, student.tensor(*shape))
    found = outcome.returned.array(*shape[1:])
    return found, student.component(model).get("training").truth(), outcome


def expected(weights, shape):
    """The map by its definition, not yet divided."""
    mean = weights[0].mean(dim=0).double().numpy()
    side = int(len(mean) ** 0.5)
    row = mean.mean(axis=0) if side * side == len(mean) else mean[0, 1:]
    grid = row.reshape(side, side)
    return np.repeat(np.repeat(grid, shape[1] // side, axis=0), shape[2] // side, axis=1)


def scaled(found):
    """Both ways of scaling that are accepted."""
    yield found / found.max()
    spread = found.max() - found.min()
    yield (found - found.min()) / spread if spread else found / found.max()


def drawn_weights(student, heads, tokens):
    return (2 * student.tensor(1, heads, tokens, tokens)).softmax(dim=-1)


@pytest.mark.explains(
    "map_has_a_value_for_each_patch",
    "map_is_as_large_as_the_image",
    "map_is_the_class_tokens_row",
    "map_without_class_token_is_the_mean_row",
)
@pytest.mark.weight(5)
@pytest.mark.parametrize(("tokens", "shape"), [(10, (3, 12, 12)), (17, (3, 32, 32)), (9, (3, 12, 12))])
def test_map_is_what_the_class_token_attends_to(student, reference, tokens, shape):
    """Of the heads' mean: the class token's row without its own column, or the mean row if there is none."""
    weights = drawn_weights(student, 4, tokens)
    found, _, _ = mapped(student, weights, shape)
    right = expected(weights, shape)
    if any(np.allclose(found, each, atol=1e-4) for each in scaled(right)):
        return
    if np.allclose(found, right, atol=1e-5):
        raise reference.named("map_not_divided")
    if found.max() > 0 and np.allclose(found / found.max(), right / right.max(), atol=1e-4):
        raise Mismatch(
            f"The map's largest value is {found.max():.3f}; it should be 1.",
            hint="Divide by the largest value of the map itself.",
        )
    if tokens == 9 and np.ptp(found) < 1e-3 and found.max() > 0:
        raise reference.named("map_of_the_mean_over_keys")
    image = torch.zeros(shape)

    class Known(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def attention(self, images):
            return weights

    for mistake in reference.mistakes_of("attention_map"):
        try:
            wrong = np.asarray(mistake.namespace["attention_map"](Known(), image))
        except Exception:  # noqa: BLE001 - this mistake cannot be made here
            continue
        if wrong.shape == found.shape and np.allclose(found, wrong, atol=1e-4):
            raise reference.named(mistake.id)
    raise Mismatch(
        "The map is not the class token's row of the heads' mean, with each patch's value on all its pixels."
    )


@pytest.mark.weight(1)
@pytest.mark.because("map_is_what_the_class_token_attends_to")
def test_a_constant_map_is_constant(student, reference):
    """Where all patches get the same attention, so does every pixel, and none is NaN."""
    weights = torch.full((1, 2, 10, 10), 0.1)
    found, _, _ = mapped(student, weights)
    if not np.isfinite(found).all() or not np.allclose(found, found[0, 0]):
        raise Mismatch("Where all patches get the same attention, the map is not the same everywhere.")
    other, _, _ = mapped(student, drawn_weights(student, 2, 10))
    if np.allclose(other, other[0, 0]):
        raise Mismatch("Whatever the class token attends to, the map is the same everywhere.")


@pytest.mark.shows("map_needs_evaluation_mode")
@pytest.mark.weight(1)
@pytest.mark.because("map_is_what_the_class_token_attends_to")
def test_map_asks_in_evaluation_mode(student, reference):
    """The model is run in evaluation mode; its mode and gradients are afterwards as they were."""
    for before in (True, False):
        _, after, outcome = mapped(student, drawn_weights(student, 2, 10), training=before)
        if not outcome.gradients_after:
            raise reference.named("map_leaves_gradients_off")
        if any(call.training for call in outcome.calls_of("attention")):
            raise reference.named("map_in_training_mode")
        if before and not after:
            raise reference.named("map_leaves_another_mode")
        if after and not before:
            raise reference.named("map_leaves_training_mode")
