"""Rigged model, loaders and optimizer, for which only the judge knows the right answers.

They record what the student's functions do to them. In evaluation an image's id is read from its first
pixels, so images may come one by one and in any order. In training, images are known by their ids, or by the
loader's order if augmentation has changed the pixels. A shuffled loader over data that the
judge sends reports when a pass over it has ended. The judge decides which data and sizes there are, and
whether a function did right.

Tests: tests/judge/test_calls.py, tests/training/test_called_training.py, tests/worker/test_rigged_runs.py
"""

import dis
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler

from grader.protocol.replies import ForwardPass

MAX_EVENTS = 4000

AskForRows = Callable[[ForwardPass], Tensor]


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


def rigged_loader(
    dataset: Dataset[Any], batch_sizes: tuple[int, ...], *, shuffled: bool = False
) -> DataLoader[Any]:
    """A real DataLoader over rigged data; even batches have a `batch_size` as well.

    Args:
        shuffled: The images come in another order in each pass, all batches of the first one's size.
    """
    if shuffled:
        return DataLoader(dataset, batch_size=batch_sizes[0], shuffle=True)
    if len(set(batch_sizes)) == 1 or (
        len(set(batch_sizes[:-1])) == 1 and 0 < batch_sizes[-1] <= batch_sizes[0]
    ):
        return DataLoader(dataset, batch_size=batch_sizes[0])
    return DataLoader(dataset, batch_sampler=UnevenBatches(batch_sizes))


class Events:
    """What happened, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, name: str) -> None:
        """Remember an event."""
        if len(self.names) < MAX_EVENTS:
            self.names.append(name)


def ids_of(images: Tensor, bits: int) -> Tensor:
    """The ids in the first pixels of images of shape (batch, channels, height, width), int64 (batch,)."""
    return ((images[:, 0].flatten(1)[:, :bits] > 0).long() * (2 ** torch.arange(bits))).sum(dim=1)


class RiggedModel(nn.Module):
    """A model that asks the judge for what it knows of an image.

    Args:
        count: How many images there are.
        rows: Asks the judge.

    Attributes:
        poses_as: The class of the student's own model, which `isinstance` takes it for: a function that asks
            what it was given learns nothing of where it is. Its constants and methods are there, too, but
            for names of the rig.
        layer_within: Its mode counts: `model.training = True` reaches none of the layers within.
    """

    poses_as: type | None = None

    def __init__(self, count: int, id_bits: int, rows: AskForRows, events: Events) -> None:
        super().__init__()
        self.count = count
        self.id_bits = id_bits
        self.layer_within = nn.Identity()
        self._rows = rows
        self._events = events

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.poses_as or type(self)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("poses_as")
        try:
            return super().__getattr__(name)
        except AttributeError:
            if own is None or name.startswith("_") or not self._has_all_of(own, name):
                raise
        member = _members(own)[name]
        return member.__get__(self, own) if hasattr(type(member), "__get__") else member

    def _has_all_of(self, own: type, name: str) -> bool:
        """Whether a member of that class is there, with all that it and its methods ask of `self`.

        What needs a layer of the student's own model is not: code that asks for it first goes another way.
        """
        members, asked, seen = _members(own), [name], set()
        while asked:
            each = asked.pop()
            if each in seen or hasattr(RiggedModel, each) or each in vars(self) or each in self._parameters:
                continue
            seen.add(each)
            if each not in members:
                return False
            asked += _asked_of_self(members[each])
        return True

    @property
    def is_training(self) -> bool:
        """Whether the layers within are in training mode."""
        return self.layer_within.training

    def rows_of(self, ids: Tensor) -> Tensor:
        """What the judge knows of the images with these ids, a row for each."""
        self._events.add("forward")
        return self._rows(
            ForwardPass(len(ids), self.is_training, torch.is_grad_enabled(), tuple(ids.tolist()))
        )


def _members(own: type) -> dict[str, Any]:
    """The members of a student's class and of its own bases, by name."""
    return {
        name: member
        for each in reversed(own.__mro__)
        if each not in nn.Module.__mro__
        for name, member in vars(each).items()
    }


def _asked_of_self(member: Any) -> list[str]:
    """The names that a method or property reads of `self`, as its code shows them."""
    function = getattr(member, "fget", None) or member
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount:
        return []
    instructions = list(dis.get_instructions(code))
    return [
        str(read.argval)
        for loaded, read in itertools.pairwise(instructions)
        if loaded.opname.startswith("LOAD_FAST") and loaded.argval == code.co_varnames[0]
        if read.opname in ("LOAD_ATTR", "LOAD_METHOD")
    ]


class TableModel(RiggedModel):
    """Logits by the image's id, read from the pixels."""

    def __init__(self, count: int, id_bits: int, rows: AskForRows, events: Events) -> None:
        super().__init__(count, id_bits, rows, events)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        """Map images of shape (batch, channels, height, width) to logits (batch, classes)."""
        return self.rows_of(ids_of(images, self.id_bits).clamp(max=self.count - 1)) * self.scale


class FeatureModel(RiggedModel):
    """Logits of the images as they arrive: `features @ weight`, with a trainable weight.

    A batch whose images were reordered, but not changed, is recognized by their ids. A further pass over the
    batch that came last is recognized by their ids or pixels: it takes nothing from the loader's order, and
    nor does a pass without gradients, which may look at any images.

    Attributes:
        logit_gradients: (images, classes), the gradients of the logits of each image in the first pass over
            the data; NaN where there were none, infinity where they were not a number.
        learned: The numbers of the forward passes through which a gradient came back, in that order.
    """

    def __init__(self, weight: Tensor, count: int, id_bits: int, rows: AskForRows, events: Events) -> None:
        super().__init__(count, id_bits, rows, events)
        self.weight = nn.Parameter(weight.clone())
        self.logit_gradients = torch.full((count, weight.shape[1]), float("nan"))
        self.learned: list[int] = []
        self._passes = 0
        self._next = {True: 0, False: 0}  # with gradients, and without
        # the images of the last pass with gradients, and their ids
        self._last: tuple[Tensor, Tensor] | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Map the next images, of shape (batch, ...), to logits (batch, classes)."""
        ids = self._ids_of(images)
        rows = self.rows_of(ids)
        self._passes += 1
        if torch.is_autocast_enabled(self.weight.device.type):
            with torch.autocast(self.weight.device.type, enabled=False):  # its answer must be known exactly
                logits = rows @ self.weight
        else:
            logits = rows @ self.weight
        if logits.requires_grad:
            logits.register_hook(self._recorder(ids, self._passes - 1))  # type: ignore[no-untyped-call]
        return logits

    def _ids_of(self, images: Tensor) -> Tensor:
        """The ids of a batch, and what comes next in the loader's order."""
        written = None
        if images.ndim == 4 and self.count < 2**self.id_bits:
            written = ids_of(images, self.id_bits)
        again = self._seen_again(images, written)
        if again is not None:
            return again
        learns = torch.is_grad_enabled()
        first, count = self._next[learns], len(images)
        ids = torch.arange(first, first + count) % self.count
        if written is not None and (
            torch.equal(written.sort().values, ids.sort().values) or (not learns and self._in_a_row(written))
        ):
            ids = written
        if learns:
            self._next[True] += count
            self._last = images.detach().clone(), ids
        else:
            self._next[False] = int(ids.max()) + 1 if count else first
        return ids

    def _seen_again(self, images: Tensor, written: Tensor | None) -> Tensor | None:
        """The ids of images that are, all of them, among those that were trained on last; else None."""
        if self._last is None or not len(images):
            return None
        pixels, ids = self._last
        if torch.equal(pixels, images):
            return ids
        if written is None or len(set(written.tolist())) < len(written):
            return None
        return written if bool(torch.isin(written, ids).all()) else None

    def _in_a_row(self, ids: Tensor) -> bool:
        """Whether ids are those of a batch of the loader, in any order."""
        ordered = ids.sort().values
        return bool(len(ids) and ordered[-1] < self.count and (ordered.diff() == 1).all())

    def _recorder(self, ids: Tensor, number: int) -> Callable[[Tensor], None]:
        is_first = self._next[True] <= self.count  # not of a later pass over the data
        before: list[Tensor] = []  # what other passes over the same images gave

        def record(gradient: Tensor) -> None:
            self._events.add("backward")
            if len(self.learned) < MAX_EVENTS:
                self.learned.append(number)
            if is_first:
                if not before:
                    kept = self.logit_gradients[ids]
                    before.append(kept.where(~kept.isnan(), torch.zeros(())))
                total = before[0] + gradient.float()
                self.logit_gradients[ids] = total.where(~total.isnan(), torch.tensor(float("inf")))

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


class RecordingSchedule(torch.optim.lr_scheduler.LambdaLR):
    """A schedule that leaves the learning rate unchanged, and records its steps."""

    def __init__(self, optimizer: torch.optim.Optimizer, events: Events) -> None:
        super().__init__(optimizer, lambda step: 1.0)
        self._events = events

    def step(self, epoch: int | None = None) -> None:
        """Take a step; the first is PyTorch's own, when it is made."""
        if hasattr(self, "_events"):
            self._events.add("schedule")
        super().step(epoch)


# --- batches ---------------------------------------------------------------------------------------------


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
        example = self.inputs[index].clone()
        return example if self._targets is None else (example, self._targets[index])


class WatchedLoader(DataLoader[Any]):
    """A loader that reports when a pass over it has ended, complete or not."""

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
