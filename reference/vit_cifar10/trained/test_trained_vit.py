"""The trained Vision Transformer: in its own sizes and with its own weights still what was checked."""

import itertools

import pytest

from grader.kit import Mismatch
from grader.kit.transformers import sees_patches

pytestmark = pytest.mark.component("VisionTransformer")

SIDE, PATCH, CHANNELS, CLASSES = 12, 4, 2, 7  # as the checks of PatchEmbedding: there it is proven
SIZES = {
    "image_size": SIDE,
    "patch_size": PATCH,
    "in_channels": CHANNELS,
    "num_classes": CLASSES,
    "dim": 20,
    "depth": 2,
    "heads": 5,
    "mlp_ratio": 1.5,
    "dropout": 0.0,
}


def was_checked_so(student):
    """Whether the ViT sees patches in these sizes, with either pooling and either kind of positions."""
    return all(
        seen_with(student, positions, pool)
        for positions, pool in itertools.product(("learned", "sinusoidal"), ("cls", "mean"))
    )


def seen_with(student, positions, pool):
    """The same with one of them, with random weights."""
    model = student.build("VisionTransformer", **SIZES, positions=positions, pool=pool)
    model.randomize(0.3)
    state = model.weights()

    def answer(images, changed):
        model.set_weights({**state, **changed})
        return model(images, shape=(len(images), CLASSES))

    return sees_patches(answer, state, student.tensor(3, CHANNELS, SIDE, SIDE), student.random)


def require_the_same(student, trained, images, train):
    """Require of the trained model what is true of the one that was checked."""
    found = sees_patches(
        lambda inputs, changed: trained(inputs, changed, train=train), trained.state, images, student.random
    )
    if found or (found is None and train):  # a dropout of the student's own cannot be switched off
        return
    if not student.shared("vit_was_checked_so", lambda: was_checked_so(student)):
        return
    if found is None:
        raise Mismatch("In evaluation mode it answers differently each time; in the checks it did not.")
    mode = "training" if train else "evaluation"
    raise Mismatch(
        f"In {mode} mode its answer changes when the patches of an image are moved together with their "
        "positions; in the sizes of the checks it does not."
    )


def test_trained_vit_sees_patches(trained, student):
    """In evaluation mode, the trained ViT sees patches and their positions in real images and in noise."""
    require_the_same(student, trained, trained.inputs, train=False)
    require_the_same(student, trained, student.tensor(*trained.inputs.shape), train=False)


def test_trained_vit_sees_patches_in_training(trained, student):
    """In training mode, without dropout, the trained ViT does so too."""
    require_the_same(student, trained, trained.inputs, train=True)
