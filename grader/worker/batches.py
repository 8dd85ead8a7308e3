"""Data loaders over the judge's own data, of any kind."""

from collections.abc import Mapping
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


def batches(described: Mapping[str, Any]) -> DataLoader[Any]:
    """A loader of `inputs` (n, ...) and `targets` (n, ...) or None, in batches of the `sizes`.

    They come in order, or `shuffled` anew in each pass.
    """
    dataset = GivenDataset(described["inputs"], described["targets"], list(described["classes"]))
    if described.get("shuffled"):
        return DataLoader(dataset, batch_size=described["sizes"][0], shuffle=True)
    return rigged_loader(dataset, tuple(described["sizes"]))
