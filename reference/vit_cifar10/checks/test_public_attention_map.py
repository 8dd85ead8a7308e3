# >>> ONLY full
"""Public checks of attention_map."""

import numpy as np
import pytest
import torch

from grader.kit import Fake, Mismatch

# of the class token, from two heads: itself, then 3 x 3 patches; their mean is MEAN_ROW
MEAN_ROW = [0.20, 0.05, 0.10, 0.15, 0.04, 0.20, 0.06, 0.08, 0.02, 0.10]
FIRST_HEAD = [0.30, 0.09, 0.02, 0.17, 0.07, 0.12, 0.04, 0.03, 0.01, 0.15]


class Mapped:
    """attention_map of a model with known attention: the map, its patches' values, what was called.

    Attributes:
        weights: (heads, tokens, tokens), whose first row is that of the class token.
        map: (height, width).
        patches: (rows, columns), at the middle of each patch.
        gradients_after: Whether gradients are computed afterwards.
    """

    def __init__(self, student, training=False, weights=None):
        if weights is None:
            weights = (2 * student.tensor(2, 10, 10)).softmax(dim=-1)
            head, mean = torch.tensor(FIRST_HEAD), torch.tensor(MEAN_ROW)
            weights[:, 0] = torch.stack([head, 2 * mean - head])
        self.weights, heads = weights, len(weights)
        pool = "cls" if weights.shape[-1] == 10 else "mean"
        sizes = {"image_size": 12, "patch_size": 4, "dim": 8, "depth": 1, "heads": heads, "pool": pool}
        fake = Fake.script(
            [0.0],
            parameters={"weight": (1,)},
            methods={"attention": Fake.script([weights[None]])},
            like=("VisionTransformer", sizes),
        )
        model = student.keep(fake, "attention_map")
        student.component(model).call("train" if training else "eval")
        outcome = student.call("attention_map", model, student.tensor(3, 12, 12))
        self.gradients_after = outcome.gradients_after
        self.map = outcome.returned.array(12, 12)
        self.patches = self.map[2::4, 2::4]
        self.calls = outcome.calls_of("attention")
        self.training_after = student.component(model).get("training").truth()

    @property
    def is_flat(self):
        """Whether all patches have the same value."""
        return np.ptp(self.patches) < 1e-3

    def shows(self, values):
        """Whether the patches' values are these, divided by their maximum or stretched from 0 to 1."""
        grid = np.asarray(values, dtype=float).reshape(3, 3)
        spread = grid.max() - grid.min()
        scaled = [grid / grid.max(), (grid - grid.min()) / spread if spread else grid]
        own = self.patches / max(self.map.max(), 1e-9)
        return any(np.allclose(own, each, atol=2e-3) for each in scaled)


@pytest.mark.component("attention_map")
@pytest.mark.weight(0.25)
def test_map_has_a_value_for_each_patch(student):
    """Each patch's value stands on all its pixels: the map is made of equal squares."""
    found = Mapped(student).map
    blocks = found.reshape(3, 4, 3, 4)
    if np.abs(blocks - blocks[:, :1, :, :1]).max() > 1e-4 * np.abs(found).max():
        raise Mismatch(
            "The pixels of a patch have different values in the map.",
            hint="mode='nearest': each patch's value stands on all its pixels, without smoothing.",
            look_for="interpolate() | resize() | zoom()",
        )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_has_a_value_for_each_patch")
@pytest.mark.weight(0.25)
def test_map_is_as_large_as_the_image(student):
    """attention_map gives a number for each pixel, and the largest is 1."""
    found = Mapped(student).map
    if found.max() > 1 + 1e-6:
        raise Mismatch("The map's largest value should be 1.", hint="Divide the map by its maximum.")
    if found.max() < 1 - 1e-3:
        raise Mismatch(
            f"The map's largest value is {found.max():.2f}; it should be 1.",
            hint="Divide the patches' values by their maximum.",
            look_for="interpolate() | kron() | repeat_interleave() | repeat()",
        )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_is_as_large_as_the_image", "map_has_a_value_for_each_patch")
@pytest.mark.weight(0.25)
def test_map_is_the_class_tokens_row(student):
    """The map shows what the class token looks at: its row of the heads' mean, without its own column."""
    found = Mapped(student)
    row, mean = np.array(MEAN_ROW), found.weights.mean(dim=0).numpy()
    if found.shows(row[1:]):
        return
    if found.shows(row[1:].reshape(3, 3).T):
        raise Mismatch(
            "Rows and columns of the map are exchanged: the value of patch 1, right of the first one, "
            "stands below it.",
            hint="The patches fill the grid row by row: reshape(rows, columns), without a transpose.",
            look_for="transpose() | permute() | _.T, reshape() | view()",
        )
    if found.shows(row[:-1]):
        raise Mismatch(
            "Each patch has the value of the patch before it, and the first one what the class token gives "
            "itself.",
            hint="Leave column 0 out, not the last one: row 0, from column 1 on.",
            look_for="_[0, :-1] | _[:, :-1] | _[..., :-1]",
        )
    heads, mean_of_heads = found.weights.numpy(), "Take the mean over the heads, mean(dim=0) of one image."
    for values, said, hint, look_for in (
        (heads[0, 0, 1:], "those of the first head", mean_of_heads, "_.attention()[0, 0] | _[:, 0]"),
        (heads[1, 0, 1:], "those of the last head", mean_of_heads, "_[0, -1] | _[:, -1]"),
        (heads[:, 0, 1:].max(axis=0), "the larger ones of the heads", mean_of_heads, "amax(), max()"),
        (
            mean[1:, 0],
            "the class token's column, how much each patch looks at it",
            "Row i says what token i looks at: row 0, not column 0.",
            "_[1:, 0] | _[:, 1:, 0] | _[..., 1:, 0], _[:, 0] | _[..., 0]",
        ),
        (
            mean.mean(axis=0)[1:],
            "the mean over all rows",
            "With a class token, its row alone: row 0 of the heads' mean.",
            "_[1:], mean(dim=0) | mean(0)",
        ),
    ):  # fmt: skip
        if found.shows(values):
            raise Mismatch(
                f"The map's values are {said}; they should be the class token's row of the heads' mean.",
                hint=hint,
                look_for=look_for,
            )
    shown, wanted = (
        ", ".join(f"{value:.2f}" for value in each) for each in (found.patches[0], row[1:4] / 0.2)
    )
    raise Mismatch(
        f"The map's first three patches have the values {shown}; divided by the maximum, the class token's "
        f"row of the heads' mean is {wanted} there.",
        hint="The mean over the heads; its row 0 without column 0; divided by its maximum.",
    )


@pytest.mark.component("attention_map")
@pytest.mark.because("map_is_the_class_tokens_row")
@pytest.mark.weight(0.25)
def test_map_without_class_token_is_the_mean_row(student):
    """Where there is no class token, the map is the mean over all rows."""
    weights = (2 * student.tensor(2, 9, 9)).softmax(dim=-1)
    found, mean = Mapped(student, weights=weights), weights.mean(dim=0).numpy()
    if not found.shows(mean.mean(axis=0)):
        column = found.is_flat or found.shows(mean.mean(axis=1))
        raise Mismatch(
            "With 9 tokens for 9 patches there is no class token; the map is not the mean over all rows"
            + (
                ": all patches have the same value, as where each row's own mean is taken."
                if found.is_flat
                else ", but over all columns."
                if column
                else "."
            ),
            hint="weights.mean(dim=0), how much each patch is looked at on average.",
            look_for="mean(dim=1) | mean(1)" if column else "",
        )


@pytest.mark.component("attention_map")
@pytest.mark.weight(0.25)
def test_map_needs_evaluation_mode(student):
    """attention_map asks the model in evaluation mode, and leaves it in the mode that it was in."""
    found = Mapped(student, training=True)
    if not found.gradients_after:
        raise Mismatch(
            "After attention_map, no gradients are computed any more: whatever trains next fails.",
            hint="with torch.no_grad(): around the call of the model ends by itself.",
            look_for="set_grad_enabled()",
        )
    if any(call.training for call in found.calls):
        raise Mismatch(
            "The model came in training mode, and was asked in it: with dropout, the map is different each "
            "time.",
            hint="model.eval() before, and the old mode afterwards: model.train(was_training).",
            look_for="no_grad() | inference_mode(), body",
        )
    if not found.training_after:
        raise Mismatch(
            "The model came in training mode, and is left in evaluation mode: it goes on training without "
            "dropout.",
            hint="Remember model.training before model.eval(), and restore it afterwards.",
            look_for="train(), eval()",
        )
    if Mapped(student, training=False).training_after:
        raise Mismatch(
            "The model came in evaluation mode, and is left in training mode.",
            hint="Remember model.training before model.eval(), and restore it afterwards.",
            look_for="train(), eval()",
        )


# <<< ONLY
