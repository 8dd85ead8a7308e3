"""The public checks."""

import pytest

from grader.kit import Mismatch, trainable_data


@pytest.mark.component("Tuned")
def test_the_first_layer_is_the_given_one(student):
    """The first layer has the weights that are given."""
    model = student.build("Tuned", 5, 8)
    model(student.tensor(2, 3, 8, 8), shape=(2, 5))
    first = next(value for value in model.weights().values() if value.shape == (8, 3, 3, 3))
    if abs(float(first.std()) - 0.2) > 0.05:
        raise Mismatch("The first layer does not have the weights of `stem.pth`.")


@pytest.mark.component("train_epoch")
def test_train_epoch_steps(student, class_names):
    """train_epoch takes a step for every batch."""
    run = student.run(
        "train_epoch", trainable_data(class_names, (8,) * 3, features=5, seed=student.next_seed())
    )
    if run.steps != 3:
        raise Mismatch(f"For a loader of 3 batches the optimizer took {run.steps} steps.")
