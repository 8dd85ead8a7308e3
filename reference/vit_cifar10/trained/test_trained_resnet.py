"""The trained ResNet: in its own width still the network that was checked in another.

A convolution treats rows as columns: with images and kernels on their side, the answers are the same.
"""

from collections import Counter

import pytest

from grader.kit import Mismatch, same

pytestmark = pytest.mark.component("ResNet18")

CLASSES, WIDTH, SIDE = 7, 4, 32


def kernels_of(width):
    """How often a ResNet-18 of a width has kernels of each shape."""
    found = Counter({(width, 3, 3, 3): 1, (width, width, 3, 3): 4})
    for channels in (2 * width, 4 * width, 8 * width):
        found[channels, channels // 2, 3, 3] += 1
        found[channels, channels, 3, 3] += 3
        found[channels, channels // 2, 1, 1] += 1
    return found


def kernels_in(state):
    """The same of the kernels that there are."""
    return Counter(tuple(value.shape) for value in state.values() if value.ndim == 4)


def on_their_side(state):
    """All kernels with rows and columns exchanged."""
    return {name: value.transpose(2, 3).contiguous() for name, value in state.items() if value.ndim == 4}


def was_checked_so(student):
    """Whether the ResNet has such kernels in this width, and treats rows as columns."""
    model = student.build("ResNet18", CLASSES, WIDTH)
    model.randomize(0.3)
    state, images = model.weights(), student.tensor(2, 3, SIDE, SIDE)
    before = model(images, shape=(2, CLASSES))
    model.set_weights(on_their_side(state))
    after = model(images.transpose(2, 3).contiguous(), shape=(2, CLASSES))
    return kernels_in(state) == kernels_of(WIDTH) and same(after, before, tolerance=1e-3)


def test_trained_resnet_is_the_one_that_was_checked(trained, student):
    """The trained ResNet has the kernels of its width, and treats rows as columns."""
    kernels = kernels_in(trained.state)
    width = next((value.shape[0] for value in trained.state.values() if value.ndim == 4), 0)
    images = trained.inputs
    turned = trained(images.transpose(2, 3).contiguous(), on_their_side(trained.state))
    if kernels == kernels_of(width) and same(turned, trained(images), tolerance=1e-3):
        return
    if not student.shared("resnet_was_checked_so", lambda: was_checked_so(student)):
        return
    if kernels != kernels_of(width):
        raise Mismatch(
            f"Its kernels are not those of a ResNet-18 of width {width}; in the width of the checks they are."
        )
    raise Mismatch(
        "It treats rows of an image differently from columns; in the width of the checks it does not."
    )
