"""The grader's own data: the hidden splits of an assignment's data set, one for each attempt."""

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
from grader.domain.evidence import Evidence
from grader.domain.seeds import keyed_number
from grader.files.user_folders import cache_folder
from grader.grading.hidden_examples import HiddenExamples
from grader.kit.splits import Examples, Rows, Splits, first_of_each, sides, taken, united, without_named

STUDY = "study"  # in a class's salt's place: what a study trains on is no attempt's split


@dataclass(frozen=True)
class SplitKey:
    """What decides the splits of a class: nobody who lacks the secret can work one out from another.

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

    Everybody's first attempt meets the same hidden images, and a later one others: what an attempt gives
    away of its split helps no later one. It may be asked from several threads.
    """

    def __init__(self, loaded: Splits, key: SplitKey, use: DataUse) -> None:
        """Take all images of a data set, whichever side they are on.

        Args:
            loaded: The data set as its file gives it.
            key: What the splits are drawn by.
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
        # the pixels of a split live as long as somebody trains on it, and those of the last one for the next
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
            made = self._alive.get(attempt)
            if made is None:
                train, test = self._sides(attempt)
                made = taken(self.name, self.classes, self._data, train, test)
                if self._use.in_parts:  # students train on what the data set's file gives for training
                    made = replace(made, withheld=test >= self._loaded_train)
                self._alive[attempt] = made
            self._last = made
            return made

    def digest(self, attempt: int) -> str:
        """SHA-256 over the images, their labels and the split of an attempt, hexadecimal."""
        with self._lock:
            if attempt not in self._digests:
                whole = hashlib.sha256(self._images_digest().encode())
                for rows in self._sides(attempt):
                    for row in rows:
                        whole.update(self._data.names[row].encode() + b"\0")
                    whole.update(b"\0")
                self._digests[attempt] = whole.hexdigest()
            return self._digests[attempt]

    def are_those_of(self, found: Evidence) -> bool:
        """Whether an earlier run trained on just these images, split as the attempt's number says.

        A grader that knew one split for all wrote no such number: its evidence stays valid as long as the
        images, and the secret that it split them by, are the same.
        """
        if found.attempt is not None:
            return found.data_digest == self.digest(found.attempt)
        with self._lock:
            return found.data_digest == self._images_digest()

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
        """Of the images as the data set's file gives them; graders before this one kept it as it is here."""
        if None not in self._digests:
            data, count, whole = self._data, self._loaded_train, hashlib.sha256()
            for text in (self.name, *self.classes, *data.names[:count], "", *data.names[count:]):
                whole.update(text.encode() + b"\0")
            for part in (slice(None, count), slice(count, None)):
                for array in (data.images[part], data.labels[part]):
                    whole.update(str(array.shape).encode())
                    whole.update(np.ascontiguousarray(array).data)
            self._digests[None] = whole.hexdigest()
        return self._digests[None]


HiddenData = HiddenSplits | HiddenExamples


def hidden_data(course: Course, assignment: Assignment, data: str, salt: Callable[[], str]) -> HiddenData:
    """The hidden data of what `--data` names: `synthetic`, or the real data set's file or folder.

    Args:
        salt: Gives the class's, of its gradebook, which is not touched before the images could be read.

    Raises:
        UsageError: The assignment has no data, or it cannot be read.
    """
    synthetic, use = data == SYNTHETIC, assignment.required_data()
    name, source = (use.synthetic, None) if synthetic else (use.real, Path(data))
    if not use.are_images:
        drawn = SplitKey(course.secret, assignment.id, salt())

        def load(attempt: int) -> Examples:
            return load_examples(
                course.datasets,
                name,
                source,
                seed=drawn.seed(attempt, "") % 2**63,  # as every generator takes them
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
