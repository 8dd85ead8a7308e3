"""The trained model: in its own sizes and with its own weights still what was checked in others.

A Vision Transformer knows where a patch lies from its position alone. If the patches of an image lie
elsewhere, and their positions with them, it answers the same; what looks at neighboring patches does not.
"""

import pytest

from grader.kit import Mismatch
from grader.kit.transformers import sees_patches

pytestmark = pytest.mark.component("ViT")

# as in the checks, nothing is as in the handout's default
SIDE, CHANNELS, CLASSES = 15, 2, 7
OPTIONS = {
    "image_size": SIDE,
    "patch_size": 5,
    "num_classes": CLASSES,
    "dim": 22,
    "depth": 2,
    "heads": 5,
    "mlp_dim": 31,
    "channels": CHANNELS,
    "dim_head": 6,
}


def was_checked_so(student):
    """Whether the ViT sees patches in the sizes of the checks, with random weights."""
    model = student.build("ViT", **OPTIONS)
    model.randomize(0.3)
    state = model.weights()

    def answer(images, changed):
        model.set_weights({**state, **changed})
        return model(images, shape=(len(images), CLASSES))

    return sees_patches(answer, state, student.tensor(3, CHANNELS, SIDE, SIDE), student.random)


def require_the_same(student, trained, images, train):
    """Require of the trained model what is true of the ViT that was checked."""

    def answer(inputs, changed):
        return trained(inputs, changed, train=train)

    found = sees_patches(answer, trained.state, images, student.random)
    if found or (found is None and train):  # a dropout of the student's own cannot be switched off
        return
    checked = student.shared("was_checked_so", lambda: was_checked_so(student))
    if found is None and checked is not None:
        raise Mismatch("In evaluation mode it answers differently each time; in the checks the ViT did not.")
    if found is False and checked:
        mode = "training" if train else "evaluation"
        raise Mismatch(
            f"In {mode} mode its answer changes when the patches of an image are moved together with their "
            "positions; in the sizes of the checks the ViT's does not."
        )


def test_trained_model_sees_patches(trained, student):
    """In evaluation mode, the trained model sees patches and their positions in real images and in noise."""
    require_the_same(student, trained, trained.inputs, train=False)
    require_the_same(student, trained, student.tensor(*trained.inputs.shape), train=False)


def test_trained_model_sees_patches_in_training(trained, student):
    """In training mode, without dropout, the trained model does so too."""
    require_the_same(student, trained, trained.inputs, train=True)
