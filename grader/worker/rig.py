"""A rigged model, loader and optimizer: their right answers are known to the judge.

What the student's functions do to them is recorded. Evaluation reads the images' ids from the pixels (the
first row carries the id in bits), so that images may be looked at one by one and in any order; training
takes them in the order in which the loader hands them out where a student's augmentation has changed the
pixels, and by their ids where it has not.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler

from grader.protocol.messages import ForwardPass

MAX_EVENTS = 4000


class RiggedDataset(Dataset[tuple[Tensor, int]]):
    """Images with labels and, as an ImageFolder has them, `classes`, `targets` and `class_to_idx`."""

    def __init__(self, images: Tensor, labels: Tensor, classes: tuple[str, ...]) -> None:
        self.images = images
        self.targets = [int(label) for label in labels]
        self.classes = list(classes)
        self.class_to_idx = {name: index for index, name in enumerate(classes)}
        self.samples = [(f"{classes[label]}/{index}.png", label) for index, label in enumerate(self.targets)]
        self.imgs = self.samples

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index].clone(), self.targets[index]


class UnevenBatches(Sampler[list[int]]):
    """Batches of given sizes, in order."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[list[int]]:
        start = 0
        for size in self.sizes:
            yield list(range(start, start + size))
            start += size

    def __len__(self) -> int:
        return len(self.sizes)


def rigged_loader(dataset: RiggedDataset, batch_sizes: tuple[int, ...]) -> DataLoader[tuple[Tensor, int]]:
    """A real DataLoader over the rigged images; even batches have a `batch_size` as well."""
    if len(set(batch_sizes)) == 1 or (
        len(set(batch_sizes[:-1])) == 1 and 0 < batch_sizes[-1] <= batch_sizes[0]
    ):
        return DataLoader(dataset, batch_size=batch_sizes[0])
    return DataLoader(dataset, batch_sampler=UnevenBatches(batch_sizes))


class Events:
    """What happened, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.forwards: list[ForwardPass] = []

    def add(self, name: str) -> None:
        """Remember an event."""
        if len(self.names) < MAX_EVENTS:
            self.names.append(name)


def ids_of(images: Tensor, bits: int) -> Tensor:
    """The ids in the first row of images of shape (batch, channels, height, width), int64 (batch,)."""
    return ((images[:, 0, 0, :bits] > 0).long() * (2 ** torch.arange(bits))).sum(dim=1)


class TableModel(nn.Module):
    """Logits by the image's id, read from the pixels: `table[id]` of shape (classes,)."""

    def __init__(self, table: Tensor, id_bits: int, events: Events) -> None:
        super().__init__()
        self.table = table
        self.id_bits = id_bits
        self.scale = nn.Parameter(torch.ones(()))
        self._events = events

    def forward(self, images: Tensor) -> Tensor:
        """Map images of shape (batch, channels, height, width) to logits (batch, classes)."""
        ids = ids_of(images, self.id_bits).clamp(max=len(self.table) - 1)
        self._events.add("forward")
        self._events.forwards.append(
            ForwardPass(len(ids), self.training, torch.is_grad_enabled(), tuple(ids.tolist()))
        )
        return self.table[ids] * self.scale


class FeatureModel(nn.Module):
    """Logits of the images as they arrive: `features[k] @ weight`, with a trainable weight.

    A batch whose images were put into another order, but not changed, is recognized by their ids.

    Attributes:
        logit_gradients: (images, classes), what reached the logits of each image's first pass; NaN where
            nothing did.
    """

    def __init__(self, features: Tensor, weight: Tensor, id_bits: int, events: Events) -> None:
        super().__init__()
        self.features = features
        self.id_bits = id_bits
        self.weight = nn.Parameter(weight.clone())
        self.logit_gradients = torch.full((len(features), weight.shape[1]), float("nan"))
        self._next = 0
        self._events = events

    def forward(self, images: Tensor) -> Tensor:
        """Map the next images, of shape (batch, ...), to logits (batch, classes)."""
        first, count = self._next, len(images)
        self._next += count
        rows = torch.arange(first, first + count) % len(self.features)
        if images.ndim == 4 and len(self.features) < 2**self.id_bits:
            ids = ids_of(images, self.id_bits)
            if torch.equal(ids.sort().values, rows):
                rows = ids
        self._events.add("forward")
        self._events.forwards.append(ForwardPass(count, self.training, torch.is_grad_enabled()))
        logits = self.features[rows] @ self.weight
        if logits.requires_grad and first + count <= len(self.features):
            logits.register_hook(self._recorder(rows))  # type: ignore[no-untyped-call]
        return logits

    def _recorder(self, rows: Tensor) -> Callable[[Tensor], None]:
        def record(gradient: Tensor) -> None:
            self._events.add("backward")
            self.logit_gradients[rows] = gradient

        return record


class RecordingSGD(torch.optim.SGD):
    """Plain SGD that remembers the gradients that it used.

    Attributes:
        used: One (k, classes) per step; zeros where there was no gradient.
    """

    def __init__(self, model: FeatureModel, rate: float, events: Events) -> None:
        super().__init__(model.parameters(), lr=rate)
        self.used: list[Tensor] = []
        self._weight = model.weight
        self._events = events

    def step(self, closure: Any = None) -> Any:
        """Take a step and remember its gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._events.add("step")
        gradient = self._weight.grad
        self.used.append(torch.zeros_like(self._weight) if gradient is None else gradient.detach().clone())
        super().step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        self._events.add("zero_grad")
        super().zero_grad(set_to_none)
