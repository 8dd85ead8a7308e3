"""The checks that students have."""

import numpy as np
import pytest

from grader.kit import Mismatch


@pytest.mark.component("Linear")
def test_linear_has_the_shape(student):
    """Linear gives one number for each output; its gradient by the input has the input's shape."""
    layer = student.make("Linear", 3, 2)
    layer.call("forward", np.ones((4, 3))).returned.array(4, 2)
    layer.call("backward", np.ones((4, 2))).returned.array(4, 3)


@pytest.mark.component("ReLU")
def test_relu_keeps_what_is_positive(student):
    """ReLU keeps what is above 0 and drops the rest."""
    x = np.array([[-2.0, 0.5], [3.0, -0.1]])
    found = student.make("ReLU").call("forward", x).returned.array(2, 2)
    if not np.allclose(found, np.maximum(x, 0)):
        raise Mismatch("For [[-2, 0.5], [3, -0.1]] it should give [[0, 0.5], [3, 0]].")


@pytest.mark.component("BatchNorm")
def test_batch_norm_normalizes(student):
    """In training, BatchNorm gives each feature mean 0 and variance 1."""
    x = student.tensor(8, 3).numpy().astype(np.float64) * 5 + 2
    found = student.make("BatchNorm", 3).call("forward", x).returned.array(8, 3)
    if not (np.allclose(found.mean(axis=0), 0, atol=1e-3) and np.allclose(found.std(axis=0), 1, atol=1e-2)):
        raise Mismatch(
            "After BatchNorm, the features of a batch have other means than 0 or variances than 1."
        )


@pytest.mark.component("softmax_cross_entropy")
def test_loss_of_equal_scores(student):
    """For equal scores the loss is the logarithm of the number of classes."""
    loss, gradient = student.call("softmax_cross_entropy", np.zeros((2, 4)), np.array([0, 3])).returned.items(
        2, "values: the loss and its gradient"
    )
    gradient.array(2, 4)
    if abs(loss.number() - np.log(4)) > 1e-4:
        raise Mismatch(f"For two examples with four equal scores it gives {loss.number():g}; log 4 is 1.386.")


@pytest.mark.component("SGD")
def test_sgd_goes_downhill(student):
    """SGD subtracts the gradient times the learning rate."""
    kept = student.keep([np.array([1.0, 2.0])], "SGD")
    student.make("SGD", kept, 0.1).call("step", [np.array([10.0, -10.0])])
    found = kept.get("").items(1)[0].array(2)
    if not np.allclose(found, [0.0, 3.0], atol=1e-6):
        raise Mismatch(f"From [1, 2] by [10, -10] times 0.1 it should come to [0, 3], and comes to {found}.")


@pytest.mark.component("Network")
def test_network_has_its_layers(student):
    """Network has a Linear, BatchNorm and ReLU for each hidden size, and a last Linear."""
    layers = student.make("Network", [2, 4, 3]).get("layers").items(4, "layers")
    kinds = [layer.thing().type for layer in layers]
    if kinds != ["Linear", "BatchNorm", "ReLU", "Linear"]:
        raise Mismatch(f"Network([2, 4, 3]).layers are {', '.join(kinds)}.")


@pytest.mark.component("fit")
def test_fit_tells_each_epochs_loss(student):
    """fit gives the mean loss of each epoch."""
    network = student.make("Network", [2, 4, 2])
    x, labels = np.linspace(-1, 1, 20).reshape(10, 2), np.array([0, 1] * 5)
    losses = student.call("fit", network, x, labels, 3, 4, 0.1).returned.items(3, "losses")
    for loss in losses:
        loss.number(0)
