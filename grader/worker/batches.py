"""Data loaders over data that the judge sends, of any kind.

It makes the loaders; a shuffled one reports when a pass over it has ended. The judge decides which data and
sizes they have, and `passes` what is recorded of a pass.

Tests: tests/judge/test_calls.py, tests/training/test_called_training.py
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch.utils.data import DataLoader, Dataset

from grader.worker.rig import rigged_loader


class GivenDataset(Dataset[Any]):
    """Inputs with targets, or inputs alone; `classes` and `targets` as an image folder has them."""

    def __init__(self, inputs: Any, targets: Any, classes: list[str]) -> None:
        self.inputs = inputs
        self._targets = targets
        self.targets = [] if targets is None else targets.tolist()
        self.classes = classes

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        given = self.inputs[index].clone()
        return given if self._targets is None else (given, self._targets[index])


class WatchedLoader(DataLoader[Any]):
    """A loader that tells when a pass over it has ended, at its end or before."""

    ended: Callable[[], None] = staticmethod(lambda: None)
    passing = 0  # passes that have begun and not ended

    def __iter__(self) -> Any:
        self.passing += 1
        try:
            yield from super().__iter__()
        finally:
            self.passing -= 1
            self.ended()


def batches(described: Mapping[str, Any]) -> DataLoader[Any]:
    """A loader of `inputs` (n, ...) and `targets` (n, ...) or None, in batches of the `sizes`.

    They come in order, or `shuffled` anew in each pass.
    """
    dataset = GivenDataset(described["inputs"], described["targets"], list(described["classes"]))
    if described.get("shuffled"):
        return WatchedLoader(dataset, batch_size=described["sizes"][0], shuffle=True)
    return rigged_loader(dataset, tuple(described["sizes"]))
