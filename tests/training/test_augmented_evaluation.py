"""A test transform that augments is measured with its chance and without, and the better one counts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.kit.splits import Splits
from grader.protocol.replies import EpochDone, Trained, TrainingPlan
from grader.training import Job, measured_training

Scripted = Callable[..., Any]


def logits(splits: Splits, wrong: int) -> Any:
    """Scores of which some are wrong."""
    made = np.zeros((len(splits.test_labels), 3), dtype=np.float32)
    shift = np.arange(len(made)) < wrong
    made[np.arange(len(made)), (splits.test_labels + shift) % 3] = 2.0
    return made


@pytest.mark.parametrize(
    ("plain", "augmented", "restored", "accuracy", "counted"),
    [
        (3, 2, False, 11 / 13, "the mean of the last 2 epochs, with the augmentation"),
        (2, 3, False, 11 / 13, "the mean of the last 2 epochs, without the augmentation"),
        (4, 1, True, 12 / 13, "of the weights that the code restored at the end, with the augmentation"),
        (1, 4, True, 12 / 13, "of the weights that the code restored at the end, without the augmentation"),
    ],
)
def test_the_better_one_counts(
    scripted: Scripted,
    job: Job,
    plain: int,
    augmented: int,
    restored: bool,
    accuracy: float,
    counted: str,
) -> None:
    """Students who added augmentation to the handout's only transform are not punished for it."""
    arrays = {"logits": logits(job.splits, plain), "augmented": logits(job.splits, augmented)}
    replies = [TrainingPlan(8, 4, "SGD", "", "cpu")]
    replies += [EpochDone(number, 0.1, arrays=arrays) for number in range(1, 9)]
    found = measured_training(
        scripted(*replies, Trained(8, arrays=arrays | ({"chosen": np.ones(1)} if restored else {}))), job
    ).training
    assert found.accuracy == pytest.approx(accuracy)
    assert found.counted == f"{counted} that is in the test transform"
    assert found.epochs[0].augmented_accuracy == pytest.approx(1 - augmented / 13)


@pytest.mark.parametrize("broken", [np.ones((13, 4), dtype=np.float32), np.full((13, 3), np.nan, "f4")])
def test_what_is_sent_beside_is_checked_too(scripted: Scripted, job: Job, broken: Any) -> None:
    """It is as untrusted as the rest."""
    arrays = {"logits": logits(job.splits, 1), "augmented": broken}
    replies = (
        TrainingPlan(1, 4, "SGD", "", "cpu"),
        EpochDone(1, 0.1, arrays=arrays),
        Trained(1, arrays=arrays),
    )
    found = measured_training(scripted(*replies), job).training
    assert found.accuracy in (None, pytest.approx(12 / 13))
    assert not found.epochs or found.epochs[0].augmented_accuracy is None
