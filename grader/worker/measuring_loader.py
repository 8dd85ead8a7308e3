"""The loader that a script measures with between epochs, unless it trains with it.

Which of the student's loaders is which, `grader.analysis` reads from names and arguments, which may deceive.
What happens cannot: who steps an optimizer in a pass over a loader trains with it.

Tests: tests/worker/test_measuring_loader.py, tests/training/test_replay.py
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader

from grader.worker.rigged_objects import WatchedLoader


class MeasuringLoader(DataLoader[Any]):
    """A few images to measure on; once it is trained with, the images to train on.

    The first batch of the first such pass is of the few images; a whole pass over the others follows.
    """

    def __init__(self, measured: DataLoader[Any], training: WatchedLoader, steps: Callable[[], int]) -> None:
        """Measure on what a loader gives.

        Args:
            measured: The loader.
            training: What is trained with.
            steps: How many steps optimizers have taken so far.
        """
        super().__init__(measured.dataset, batch_size=measured.batch_size)
        self._training = training
        self._steps = steps
        self._trains = False

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        if not self._trains:
            before = self._steps()
            for batch in super().__iter__():
                yield batch
                if self._steps() > before and not self._training.passing:
                    self._trains = True
                    break
        if self._trains:
            yield from self._training

    def __len__(self) -> int:
        return len(self._training) if self._trains else super().__len__()
