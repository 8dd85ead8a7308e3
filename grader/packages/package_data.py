"""The few images, or other examples, of a package's reduced run: drawn, written into it, and read there.

They are drawn with the package's own key, so that they say nothing about the splits of `grader grade`. Their
hidden labels are in the package, which only staff and the process that grades can read. It trains nothing.
"""

import io
import math
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.grading.hidden_splits import hidden_data
from grader.kit.splits import Examples, Splits, first_of_each, taken, united

FILE = "reduced_run.npz"  # in the package's folder
MOST_PER_CLASS = 100  # that a package holds unless more are asked for
MOST_EXAMPLES = 1000  # the same of examples without classes
_CAUTION = 0.95  # further examples may be harder to compress
_ATTEMPT = 1
_SALT = "reduced run of a package"
_NAMES = ("train_names", "test_names")


@dataclass(frozen=True)
class ReducedRequest:
    """What an instructor asks of a reduced run.

    Attributes:
        data: The data set's file or folder, or `synthetic`.
        per_class: How many of each class to train on, or in all where there are no classes; None: as many as
            there is room for, but no more than a hundred of a class.
        decides: What it measures gives the points.
    """

    data: str
    per_class: int | None = None
    decides: bool = False


@dataclass(frozen=True)
class PackedData:
    """What a package trains on and measures on, as a file.

    Attributes:
        content: The file.
        train: How many examples it trains on.
        test: How many it measures on.
    """

    content: bytes
    train: int
    test: int


def packed_data(course: Course, assignment: Assignment, asked: ReducedRequest, room: int) -> PackedData:
    """Draw some of a data set.

    Args:
        course: With the package's key in place of its secret: all is drawn with it.
        room: For the file, in bytes, where nobody asks for a number.

    Raises:
        UsageError: The assignment trains nothing, or the data cannot be used.
    """
    if assignment.data is None:
        raise UsageError(
            f"--reduced: {assignment.id} has no data and trains nothing, so there is nothing to reduce. "
            "Leave the option out."
        )
    whole = hidden_data(course, assignment, asked.data, lambda: _SALT).of(_ATTEMPT)
    share = assignment.data.train_share
    if asked.per_class is not None:
        return _packed(whole, asked.per_class, share)[0]
    packed, size = _packed(whole, _fitting(whole, share, room), share)
    # how much more there is room for is seen by how far these could be compressed
    more, _ = _packed(whole, _fitting(whole, share, int(_CAUTION * room * size / len(packed.content))), share)
    return more if len(more.content) <= room else packed


def _packed(whole: Splits | Examples, count: int, share: float) -> tuple[PackedData, int]:
    """Some of a data set as a file, and its size before it was compressed, in bytes.

    Args:
        count: How many of each class to train on, or in all where there are no classes.
        share: Of all that is packed, how much is for training.
    """
    kept = _few(whole, count, max(math.ceil(count * (1 - share) / share), 1))
    files: dict[str, Any] = {
        name: np.asarray(value) for name, value in vars(kept).items() if value is not None
    }
    held = io.BytesIO()
    np.savez_compressed(held, **files)
    train, test = (kept.train_labels, kept.test_labels) if isinstance(kept, Splits) else _inputs(kept)
    size = sum(array.nbytes for array in files.values())
    return PackedData(held.getvalue(), len(train), len(test)), size


def read_packed_data(folder: Path) -> Splits | Examples:
    """What `packed_data` wrote.

    Args:
        folder: The package's.

    Raises:
        UsageError: It is not there, or damaged.
    """
    path = folder / FILE
    try:
        with np.load(path, allow_pickle=False) as file:
            values: dict[str, Any] = {name: file[name] for name in file.files}
        values["name"] = str(values["name"])
        if "train_labels" not in values:
            return Examples(**{"train_targets": None, **values})
        for name in ("classes", *_NAMES):
            values[name] = tuple(values[name].tolist())
        return Splits(**values)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"{path}: is not the data of a reduced run ({type(error).__name__}). Make the package again: "
            "grader package"
        ) from None


def _inputs(examples: Examples) -> tuple[Any, Any]:
    return examples.train_inputs, examples.test_inputs


def _few(whole: Splits | Examples, train: int, test: int) -> Splits | Examples:
    """The first ones on each side, of each class where there are classes."""
    if isinstance(whole, Examples):
        targets = whole.train_targets
        return replace(
            whole,
            train_inputs=whole.train_inputs[:train],
            train_targets=None if targets is None else targets[:train],
            test_inputs=whole.test_inputs[:test],
            test_targets=whole.test_targets[:test],
        )
    labels = (whole.train_labels, whole.test_labels)
    rows, test_rows = (
        first_of_each(np.arange(len(of_side)), of_side, most)
        for of_side, most in zip(labels, (train, test), strict=True)
    )
    few = taken(whole.name, whole.classes, united(whole), rows, len(whole.train_labels) + test_rows)
    return replace(few, withheld=None if whole.withheld is None else whole.withheld[test_rows])


def _fitting(whole: Splits | Examples, share: float, room: int) -> int:
    """How many to train on, so that they and their share for measuring take no more room, uncompressed."""
    if isinstance(whole, Splits):
        each, most = whole.train_images[:1].nbytes * len(whole.classes), MOST_PER_CLASS
    else:
        targets = 0 if whole.train_targets is None else whole.train_targets[:1].nbytes
        each, most = whole.train_inputs[:1].nbytes + targets, MOST_EXAMPLES
    # one less, since those for measuring are rounded up
    return max(min(int((room / each - 1) * share), most), 1)
