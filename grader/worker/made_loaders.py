"""The student's own loaders as their code makes them: with which transforms, and of how large batches.

The source alone does not say it where a function, a class or a loop makes them. So what the loaders depend on
is executed before the training, with a glimpse of the training images, under wrong labels, in place of each
folder: what is measured there, as a mean, is nearly that of all images. A data set of the student's own is
searched for the transform that it holds. Where this fails nothing is known, and what was read from the source
counts (`training_setup`, which also puts the grader's images in place).

Tests: tests/worker/test_made_loaders.py
"""

import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, dataset, random_split
from torchvision import transforms
from torchvision.datasets import DatasetFolder, ImageFolder, VisionDataset

from grader.domain.analyzed_program import DATA_NAME, NOTHING_NAME
from grader.domain.split_sides import split_side
from grader.worker.model_outputs import same_random_numbers
from grader.worker.student_environment import Inert
from grader.worker.student_faults import StudentFault, students_code
from grader.worker.student_module import StudentModule, quiet
from grader.worker.transforms import Transform, picture_of

MOST_WRAPPED = 5  # data sets around each other
WITHOUT_WORKERS = {
    "num_workers": 0,
    "timeout": 0,
    "pin_memory": False,
    "persistent_workers": False,
    "prefetch_factor": None,
    "multiprocessing_context": None,
}


@dataclass(frozen=True)
class MadeLoaders:
    """What is known of the student's loaders; None: it is not.

    Attributes:
        batch_size: Of the training loader.
        train_transform, test_transform: Of the images that the training and the test loader give.
    """

    batch_size: int | None = None
    train_transform: Transform | None = None
    test_transform: Transform | None = None


def made_loaders(student: StudentModule, glimpse: Any) -> MadeLoaders:
    """Execute what the loaders of top level depend on; random numbers and the module stay as they are.

    Args:
        glimpse: Some of the training images, uint8 (n, height, width[, 3]): see `requests.glimpse_of`.
    """
    loading = student.program.recipe.loading
    if not loading.statements:
        return MadeLoaders()
    before = dict(student.namespace)
    student.namespace |= {
        DATA_NAME: {"class_names": list(student.class_names)},
        NOTHING_NAME: Inert(NOTHING_NAME),
        **{name: _split_anyhow for name, value in before.items() if value is random_split},
    }
    try:
        with same_random_numbers(), _folders_of(glimpse, student.class_names), quiet():
            student.run(loading.statements[: loading.before])
            trained_with = _read(student)
            student.run(loading.statements[loading.before :])
            return _together(trained_with, _read(student))
    except StudentFault:
        return MadeLoaders()
    finally:
        student.namespace.clear()
        student.namespace.update(before)


def _read(student: StudentModule) -> MadeLoaders:
    """What is known of the loaders that the module has now.

    Raises:
        StudentFault: Code of the student's raised.
    """
    by_side: dict[str, DataLoader[Any]] = {}
    with students_code():
        for name in student.program.recipe.loading.loaders:
            for side, loader in _by_side(name, student.namespace.get(name)):
                by_side.setdefault(side, loader)
        train, test = by_side.get("train"), by_side.get("test")
        size = train.batch_size if train is not None else None
        return MadeLoaders(
            size if type(size) is int else None,
            _transform_of(train.dataset) if train is not None else None,
            _transform_of(test.dataset) if test is not None else None,
        )


def _together(trained_with: MadeLoaders, at_the_end: MadeLoaders) -> MadeLoaders:
    """For training what was there before it counts, for test images what is there at the end."""
    return MadeLoaders(
        trained_with.batch_size or at_the_end.batch_size,
        trained_with.train_transform or at_the_end.train_transform,
        at_the_end.test_transform or trained_with.test_transform,
    )


def _by_side(name: str, value: object) -> Iterator[tuple[str, DataLoader[Any]]]:
    """(side, loader) for a loader, or for each in a dictionary of them."""
    if isinstance(value, DataLoader):
        yield split_side(name) or "train", value
    elif isinstance(value, Mapping):
        for key, held in value.items():
            side = split_side(key) if isinstance(key, str) else None
            if side is not None and isinstance(held, DataLoader):
                yield side, held


def _transform_of(data: object) -> Transform | None:
    steps = _steps(data, MOST_WRAPPED)
    if not steps:
        return None
    made: Transform = steps[0] if len(steps) == 1 else transforms.Compose(steps)
    return made


def _steps(data: object, depth: int) -> list[Any] | None:
    """The transforms of a data set and of those that it wraps, from the innermost on; None: not known."""
    if depth == 0:
        return None
    if isinstance(data, Subset):
        return _steps(data.dataset, depth - 1)
    if isinstance(data, ConcatDataset):
        every = [_steps(part, depth - 1) for part in data.datasets]
        return every[0] if all(part == every[0] for part in every) else None
    if isinstance(data, DatasetFolder):
        is_usual = type(data).__getitem__ is DatasetFolder.__getitem__
        return [step for step in (data.transform,) if step is not None] if is_usual else None
    if not isinstance(data, Dataset):
        return None
    held = list(vars(data).values())
    wrapped = [value for value in held if isinstance(value, Dataset)]
    own = [value for value in held if _is_transform(value)]
    if len(own) != 1 or len(wrapped) > 1:  # without one of its own, its code may do anything
        return None
    inner = _steps(wrapped[0], depth - 1) if wrapped else []
    return [*inner, *own] if inner is not None else None


def _is_transform(value: object) -> bool:
    return type(value).__module__.startswith("torchvision.transforms")


# --- folders ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _folders_of(images: Any, classes: Sequence[str]) -> Iterator[None]:
    """Have every image folder hold these images; data sets may be split whatever their sizes are.

    Args:
        images: uint8 (n, height, width[, 3]); their labels are wrong on purpose.
    """

    def opened(path: str) -> Any:
        return picture_of(images[int(re.sub(r"\D", "", path) or 0)])

    def initializer(real: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(real)

        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            given = signature.bind(self, *args, **kwargs).arguments
            root = given["root"] if isinstance(given["root"], str | os.PathLike) else ""
            VisionDataset.__init__(self, root, None, given.get("transform"), given.get("target_transform"))
            self.loader = opened
            self.classes = list(classes)
            self.class_to_idx = {name: index for index, name in enumerate(classes)}
            self.samples = [(f"{index}.png", index % len(classes)) for index in range(len(images))]
            self.imgs, self.targets = self.samples, [label for _, label in self.samples]

        return made

    real_loader, loaders_signature = DataLoader.__init__, inspect.signature(DataLoader.__init__)

    def without_workers(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = loaders_signature.bind(self, *args, **kwargs)
        bound.arguments.update({key: v for key, v in WITHOUT_WORKERS.items() if key in bound.arguments})
        real_loader(*bound.args, **bound.kwargs)

    with contextlib.ExitStack() as stack:
        for kind in (ImageFolder, DatasetFolder):
            stack.enter_context(_patched(kind, "__init__", initializer(kind.__init__)))
        stack.enter_context(_patched(DataLoader, "__init__", without_workers))
        for module in (dataset, torch.utils.data):
            stack.enter_context(_patched(module, "random_split", _split_anyhow))
        yield


@contextlib.contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    real = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, real)


def _split_anyhow(data: Any, lengths: Sequence[Any], *_: Any, **__: Any) -> list[Subset[Any]]:
    """As `random_split`, but all of the parts have all images: the sizes may be those of other data."""
    return [Subset(data, range(len(data))) for _ in lengths]
