"""The public checks."""

import pytest

from grader.kit import Mismatch


@pytest.mark.component("Perceptron")
def test_perceptron_answers(student):
    """Perceptron gives a score per class."""
    student.build("Perceptron", 8, 3, 5, 7)(student.tensor(2, 3, 8, 8), shape=(2, 5))


@pytest.mark.component("ConvNet")
def test_convnet_answers(student):
    """ConvNet gives a score per class."""
    student.build("ConvNet", 3, 5, 4)(student.tensor(2, 3, 8, 8), shape=(2, 5))


@pytest.mark.component("train_epoch")
def test_train_epoch_trains(student):
    """train_epoch is there."""
    if "train_epoch" not in student.loaded.kinds:
        raise student.missing("train_epoch")


@pytest.mark.component("evaluate")
def test_evaluate_measures(student):
    """evaluate is there."""
    if "evaluate" not in student.loaded.kinds:
        raise Mismatch("evaluate is missing.")
