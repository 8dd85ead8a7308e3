"""A loader that is trained with gives what there is to train on, whatever it is called."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from grader.worker.measuring_loader import MeasuringLoader
from grader.worker.rigged_objects import WatchedLoader

FEW, MANY = TensorDataset(torch.arange(4)), TensorDataset(torch.arange(100, 110))


class Passes:
    """Both loaders, how many steps were taken, and how many passes over the training images have ended."""

    def __init__(self) -> None:
        self.steps = self.ended = 0
        self.training = WatchedLoader(MANY, batch_size=2)
        self.training.ended = self.count  # type: ignore[method-assign]
        self.measuring = MeasuringLoader(DataLoader(FEW, batch_size=2), self.training, lambda: self.steps)

    def count(self) -> None:
        """A pass has ended."""
        self.ended += 1

    def over(self, loader: DataLoader, *, steps: bool) -> list[int]:
        """The images of a pass."""
        seen: list[int] = []
        for (batch,) in loader:
            seen += batch.tolist()
            self.steps += steps
        return seen


def test_what_is_measured_with_stays_as_it_is() -> None:
    passes = Passes()
    assert passes.over(passes.training, steps=True) == list(range(100, 110))
    assert passes.over(passes.measuring, steps=False) == [0, 1, 2, 3]
    assert (len(passes.measuring), passes.ended) == (2, 1)


def test_what_is_trained_with_gives_the_images_to_train_on() -> None:
    """From the second batch on, and in all further passes."""
    passes = Passes()
    assert passes.over(passes.measuring, steps=True) == [0, 1, *range(100, 110)]
    assert passes.over(passes.measuring, steps=True) == list(range(100, 110))
    assert (len(passes.measuring), passes.ended) == (5, 2)


def test_steps_of_a_pass_over_the_training_images_are_no_evidence() -> None:
    """As when batches of both are drawn in turn."""
    passes = Passes()
    for _, measured in zip(passes.training, passes.measuring, strict=False):
        passes.steps += 1
        assert measured[0].max() < 4
    assert len(passes.measuring) == 2
