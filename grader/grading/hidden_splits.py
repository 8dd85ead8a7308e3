"""The grader's own data: hidden splits of images, or hidden examples, one for each attempt.

It makes the data that a submission is trained and measured on from a hidden seed and the attempt's number.
It keeps the few that are needed again, and says whether evidence was found with the same data. It never
decides which attempt a submission is.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from grader.course.dataset_file import SYNTHETIC, load_dataset, load_examples
from grader.course.locate import Course
from grader.domain.assignment import Assignment, DataUse
from grader.domain.assignment_versions import keyed_number
from grader.domain.errors import UsageError
from grader.domain.run_facts import RunFacts
from grader.files.known_folders import cache_folder
from grader.kit.splits import Examples, Rows, Splits, first_of_each, sides, taken, united, without_named

KEPT = 2  # attempts whose data are kept


class HiddenExamples:
    """The examples of each attempt. What an attempt reveals of its own examples helps no later one.

    Thread-safe.
    """

    classes: tuple[str, ...] = ()

    def __init__(self, name: str, load: Callable[[int], Examples]) -> None:
        """Nothing is loaded yet.

        Args:
            name: The data set's.
            load: The number of an attempt -> its examples.
        """
        self.name = name
        self._load = load
        self._lock = threading.Lock()
        self._kept: dict[int, Examples] = {}
        self._digests: dict[int, str] = {}

    @property
    def training_size(self) -> int:
        """How many examples a first attempt is trained on."""
        return len(self.of(1).train_inputs)

    def of(self, attempt: int) -> Examples:
        """The examples of an attempt.

        Args:
            attempt: Its number, 1 for a student's first.

        Raises:
            CourseError: The data set file is broken.
            UsageError: The data cannot be used.
        """
        with self._lock:
            if attempt not in self._kept:
                while len(self._kept) >= KEPT:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[attempt] = self._load(attempt)
            return self._kept[attempt]

    def again(self, attempt: int) -> Examples:
        """The examples of an attempt, loaded anew: the same ones, unless the data set's file errs."""
        return self._load(attempt)

    def digest(self, attempt: int) -> str:
        """SHA-256 over the examples of an attempt, hexadecimal."""
        if attempt not in self._digests:
            examples, hasher = self.of(attempt), hashlib.sha256(self.name.encode())
            for array in (
                examples.train_inputs,
                examples.train_targets,
                examples.test_inputs,
                examples.test_targets,
            ):
                hasher.update(b"none" if array is None else f"{array.dtype} {array.shape}".encode())
                if array is not None:
                    hasher.update(np.ascontiguousarray(array).data)
            self._digests[attempt] = hasher.hexdigest()
        return self._digests[attempt]

    def are_those_of(self, earlier: RunFacts) -> bool:
        """Whether an earlier run trained on exactly these examples."""
        return earlier.attempt is not None and earlier.data_digest == self.digest(earlier.attempt)


# --- hidden splits ---------------------------------------------------------------------------------------


STUDY = "study"  # in place of a class's salt: what a study trains on is not the split of any attempt


@dataclass(frozen=True)
class SplitKey:
    """What decides the splits of a class. Nobody who lacks the secret can work one out from another.

    Attributes:
        secret: The course's.
        assignment_id: Another assignment with the same images has other splits.
        salt: The class's, which its gradebook keeps: another term has other splits.
    """

    secret: str = field(repr=False)
    assignment_id: str
    salt: str = field(repr=False)

    def seed(self, attempt: int, label: str) -> int:
        """The seed of one class label's shuffle in the split of an attempt."""
        return keyed_number(self.secret, "split", self.assignment_id, self.salt, attempt, label)


class HiddenSplits:
    """The split of each attempt, all of the same images, which are decoded once.

    Everybody's first attempt meets the same hidden images, and each later one meets others: what an attempt
    reveals of its split helps no later one. Thread-safe.
    """

    def __init__(self, loaded: Splits, key: SplitKey, use: DataUse) -> None:
        """Take all images of a data set, whichever side they are on.

        Args:
            loaded: The data set as its file gives it.
            key: What the splits are drawn from.
            use: The share of each class that trains, and how many images of a class each side has at most.
        """
        self.name = loaded.name
        self.classes = loaded.classes
        self._data = united(loaded)
        self._loaded_train = len(loaded.train_names)
        self._key = key
        self._use = use
        self._lock = threading.Lock()
        self._rows: dict[int, tuple[Rows, Rows]] = {}
        # a split's pixels live as long as somebody trains on it; those of the last one are kept for the next
        self._alive: WeakValueDictionary[int, Splits] = WeakValueDictionary()
        self._last: Splits | None = None
        self._digests: dict[int | None, str] = {}

    @property
    def training_size(self) -> int:
        """How many images a first attempt is trained on."""
        return len(self._sides(1)[0])

    def of(self, attempt: int) -> Splits:
        """The split of an attempt.

        Args:
            attempt: Its number, 1 for a student's first.
        """
        with self._lock:
            splits = self._alive.get(attempt)
            if splits is None:
                train, test = self._sides(attempt)
                splits = taken(self.name, self.classes, self._data, train, test)
                if self._use.in_parts:  # students train on what the data set's file gives for training
                    splits = replace(splits, withheld=test >= self._loaded_train)
                self._alive[attempt] = splits
            self._last = splits
            return splits

    def digest(self, attempt: int) -> str:
        """SHA-256 over the images, their labels and the split of an attempt, hexadecimal."""
        with self._lock:
            if attempt not in self._digests:
                hasher = hashlib.sha256(self._images_digest().encode())
                for rows in self._sides(attempt):
                    for row in rows:
                        hasher.update(self._data.names[row].encode() + b"\0")
                    hasher.update(b"\0")
                self._digests[attempt] = hasher.hexdigest()
            return self._digests[attempt]

    def are_those_of(self, earlier: RunFacts) -> bool:
        """Whether an earlier run trained on exactly these images, split as the attempt's number says.

        A grader that had one split for all wrote no such number: its evidence stays valid as long as the
        images, and the secret that it split them by, are the same.
        """
        if earlier.attempt is not None:
            return earlier.data_digest == self.digest(earlier.attempt)
        with self._lock:
            return earlier.data_digest == self._images_digest()

    def _sides(self, attempt: int) -> tuple[Rows, Rows]:
        if attempt not in self._rows:
            train, test = sides(
                self.classes,
                self._data,
                seed=lambda label: self._key.seed(attempt, label),
                train_share=self._use.train_share,
            )
            train, test = (without_named(rows, self._data.names, self._use.without) for rows in (train, test))
            labels = self._data.labels
            self._rows[attempt] = (
                first_of_each(train, labels, self._use.train_per_class),
                first_of_each(test, labels, self._use.test_per_class),
            )
        return self._rows[attempt]

    def _images_digest(self) -> str:
        """The digest of the images as the data set's file gives them; earlier versions kept the same one."""
        if None not in self._digests:
            data, count, hasher = self._data, self._loaded_train, hashlib.sha256()
            for text in (self.name, *self.classes, *data.names[:count], "", *data.names[count:]):
                hasher.update(text.encode() + b"\0")
            for part in (slice(None, count), slice(count, None)):
                for array in (data.images[part], data.labels[part]):
                    hasher.update(str(array.shape).encode())
                    hasher.update(np.ascontiguousarray(array).data)
            self._digests[None] = hasher.hexdigest()
        return self._digests[None]


HiddenData = HiddenSplits | HiddenExamples


def hidden_data(course: Course, assignment: Assignment, data: str, salt: Callable[[], str]) -> HiddenData:
    """The hidden data that `--data` names: `synthetic`, or the real data set's file or folder.

    Args:
        salt: Gives the class's salt, kept in its gradebook, which is not touched until the images were read.

    Raises:
        UsageError: The assignment has no data, or it cannot be read.
    """
    synthetic, use = data == SYNTHETIC, assignment.required_data()
    name, source = (use.synthetic, None) if synthetic else (use.real, Path(data))
    if not use.are_images:
        if source is not None and not source.exists():  # the data set's file may not look at it
            if use.is_made:
                raise UsageError(
                    f"--data {data}: there is no such file or folder. These data are made, and need none: "
                    "leave it out."
                )
            raise UsageError(
                f"--data {data}: there is no such file or folder. Name that of {name}, or `{SYNTHETIC}`."
            )
        key = SplitKey(course.secret, assignment.id, salt())

        def load(attempt: int) -> Examples:
            return load_examples(
                course.datasets,
                name,
                source,
                seed=key.seed(attempt, "") % 2**63,  # as every generator takes them
                train_share=use.train_share,
                cache=cache_folder(),
            )

        return HiddenExamples(name, load)
    loaded = load_dataset(
        course.datasets,
        name,
        source,
        seed=course.split_seed,
        train_share=use.train_share,
        cache=cache_folder(),
    )
    return HiddenSplits(loaded, SplitKey(course.secret, assignment.id, salt()), use)
