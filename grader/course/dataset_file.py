"""Loads a data set file of the course, `datasets/<name>.py`, and checks what it returns."""

import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from grader.domain.errors import CourseError, GraderError
from grader.kit import Examples, Splits
from grader.kit.splits import ARRAY_TYPES

SYNTHETIC = "synthetic"  # in place of a path: the images that a data set makes


@dataclass(frozen=True)
class DatasetFile:
    """The declarations of a data set file.

    Attributes:
        path: The file.
        name: Its `NAME`, which is also the file's name.
        title: Its `TITLE`, for people.
        classes: Its `CLASSES`, in the order of the labels; () where the targets are not classes.
        load: `load(source, *, seed, train_share, cache)` -> `Splits`, or `Examples`.
    """

    path: Path
    name: str
    title: str
    classes: tuple[str, ...]
    load: Callable[..., Any]


def dataset_file(datasets: Path, name: str, *, labeled: bool = True) -> DatasetFile:
    """The data set file of that name.

    Args:
        datasets: The course's folder of data set files.
        name: The file's name without `.py`.
        labeled: Whether it has classes.

    Raises:
        CourseError: The file is absent, cannot be executed or lacks a declaration.
    """
    path = datasets / f"{name}.py"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or not path.is_file():
        names = sorted(file.stem for file in datasets.glob("[a-z]*.py"))
        choices = f"the course has {', '.join(names)}" if names else f"{datasets} holds no data set files"
        raise CourseError(f"There is no data set '{name}': {choices}. Correct the name, or add {path}.")
    module = _executed(path)
    declared = {key: getattr(module, key, None) for key in ("NAME", "TITLE", "CLASSES", "load")}
    classes = declared["CLASSES"]
    if declared["NAME"] != name:
        raise _fault(path, f"NAME is {declared['NAME']!r}. Set it to '{name}', like the file's name")
    if not isinstance(declared["TITLE"], str):
        raise _fault(path, "TITLE is missing. Set it to a line of text")
    if not labeled:
        classes = ()
    elif (
        not isinstance(classes, tuple)
        or len(set(classes)) < 2
        or not all(isinstance(c, str) for c in classes)
    ):
        raise _fault(path, "CLASSES must be a tuple of two or more class names. Set it")
    elif len(set(classes)) != len(classes):
        raise _fault(path, "CLASSES names a class twice. Remove one")
    if not callable(declared["load"]):
        raise _fault(path, "load is missing. Define load(source, *, seed, train_share, cache)")
    return DatasetFile(path, name, declared["TITLE"], classes, declared["load"])


def load_dataset(
    course_datasets_dir: Path,
    name: str,
    source: Path | None,
    *,
    seed: int,
    train_share: float = 0.7,
    cache: Path | None = None,
) -> Splits:
    """A data set of the course, split into training and test images.

    Args:
        course_datasets_dir: The course's folder of data set files.
        name: The data set's name: `neu_cls`, `synthetic_steel`.
        source: The file or folder with the images; None: the data set generates them.
        seed: Of the split (and of generated images).
        train_share: The share of each class that trains, more than 0, less than 1.
        cache: The folder for decoded images; None: no cache.

    Raises:
        CourseError: The data set file is absent or broken, or returns something malformed.
        UsageError: The source cannot be used.
    """
    file = dataset_file(course_datasets_dir, name)
    splits = _loaded(file, source, seed=seed, train_share=train_share, cache=cache)
    malformation = _malformation(splits, file)
    if malformation:
        raise _fault(file.path, f"load returned {malformation}. Fix the file")
    return splits  # type: ignore[no-any-return]  # `_malformation` has proved it


def load_examples(
    course_datasets_dir: Path,
    name: str,
    source: Path | None,
    *,
    seed: int,
    train_share: float = 0.7,
    cache: Path | None = None,
) -> Examples:
    """A data set of the course whose inputs and targets are arrays of any kind.

    Args:
        seed: Of the split, and of what is generated; another one gives other hidden examples.

    Raises:
        CourseError: The data set file is absent or broken, or returns something malformed.
        UsageError: The source cannot be used.
    """
    file = dataset_file(course_datasets_dir, name, labeled=False)
    examples = _loaded(file, source, seed=seed, train_share=train_share, cache=cache)
    malformation = _malformed_examples(examples, file)
    if malformation:
        raise _fault(file.path, f"load returned {malformation}. Fix the file")
    return examples  # type: ignore[no-any-return]  # `_malformed_examples` has proved it


def _loaded(file: DatasetFile, source: Path | None, **settings: Any) -> Any:
    try:
        return file.load(source, **settings)
    except GraderError:
        raise
    except Exception as error:
        raise _fault(file.path, f"load raised {_described(error)}. Fix the file") from error


def _fault(path: Path, sentence: str) -> CourseError:
    return CourseError(f"{path.parent.name}/{path.name}: {sentence}.")


def _described(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _executed(path: Path) -> ModuleType:
    """The module, under a unique name: `datasets` is also the name of a famous package."""
    name = f"_course_dataset_{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _fault(path, "Python cannot load this file. Check its name and its permissions")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up their module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        sys.modules.pop(name, None)
        raise _fault(path, f"line {error.lineno} is not Python ({error.msg}). Fix the line") from error
    except Exception as error:
        sys.modules.pop(name, None)
        raise _fault(path, f"importing it raised {_described(error)}. Fix the file") from error
    return module


def _malformation(splits: object, file: DatasetFile) -> str:
    """What is wrong with the splits, in words; empty when nothing is."""
    if not isinstance(splits, Splits):
        return f"a {type(splits).__name__} instead of Splits"
    if splits.name != file.name:
        return f"the name {splits.name!r} instead of '{file.name}'"
    if splits.classes != file.classes:
        return "other classes than CLASSES"
    sides = (
        ("training", splits.train_images, splits.train_labels, splits.train_names),
        ("test", splits.test_images, splits.test_labels, splits.test_names),
    )
    for side, images, labels, names in sides:
        malformation = _side_malformation(images, labels, names, len(file.classes))
        if malformation:
            return f"{side} {malformation}"
    if splits.train_images.shape[1:] != splits.test_images.shape[1:]:
        return "training and test images of different shapes"
    all_names = splits.train_names + splits.test_names
    if len(set(all_names)) != len(all_names):
        return "an image name twice: a name stands for one image, on one side"
    absent = set(range(len(file.classes))) - set(splits.train_labels.tolist())
    if absent:
        return f"no training images of class '{file.classes[min(absent)]}'"
    return ""


def _side_malformation(images: object, labels: object, names: object, classes: int) -> str:
    """What is wrong with one side of the splits, in words; empty when nothing is."""
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        return f"images that are not a uint8 array ({getattr(images, 'dtype', type(images).__name__)})"
    gray, color = images.ndim == 3, images.ndim == 4 and images.shape[-1] == 3
    if not (gray or color) or 0 in images.shape:
        return f"images of shape {images.shape} instead of (n, height, width) or (n, height, width, 3)"
    if not isinstance(labels, np.ndarray) or labels.dtype != np.int64 or labels.ndim != 1:
        return "labels that are not an int64 array of one dimension"
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        return "names that are not a tuple of text"
    if not len(images) == len(labels) == len(names):
        return f"images, labels and names of different counts: {len(images)}, {len(labels)}, {len(names)}"
    if labels.min() < 0 or labels.max() >= classes:
        return f"labels outside 0 to {classes - 1}"
    return ""


def _malformed_examples(examples: object, file: DatasetFile) -> str:
    """What is wrong with the examples, in words; empty when nothing is."""
    if not isinstance(examples, Examples):
        return f"a {type(examples).__name__} instead of Examples"
    if examples.name != file.name:
        return f"the name {examples.name!r} instead of '{file.name}'"
    arrays = {
        "train_inputs": examples.train_inputs,
        "train_targets": examples.train_targets,
        "test_inputs": examples.test_inputs,
        "test_targets": examples.test_targets,
    }
    for name, array in arrays.items():
        if name == "train_targets" and array is None:
            continue
        if not isinstance(array, np.ndarray) or array.dtype.name not in ARRAY_TYPES:
            kind = getattr(array, "dtype", type(array).__name__)
            return f"{name} that are not an array of {', '.join(ARRAY_TYPES)} ({kind})"
        if array.ndim == 0 or not array.size:
            return f"{name} of shape {array.shape}"
    for side in ("train", "test"):
        inputs, targets = arrays[f"{side}_inputs"], arrays[f"{side}_targets"]
        if targets is not None and len(inputs) != len(targets):  # type: ignore[arg-type]
            return f"{side}_inputs and {side}_targets of different counts"
    return ""
