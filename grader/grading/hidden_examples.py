"""The grader's own data where they are not labeled images: made anew for each attempt, by a hidden seed."""

import hashlib
import threading
from collections.abc import Callable

import numpy as np

from grader.domain.evidence import Evidence
from grader.kit.splits import Examples

KEPT = 2  # attempts whose data are kept


class HiddenExamples:
    """The examples of each attempt: what an attempt gives away of its own helps no later one.

    It may be asked from several threads.
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

    def digest(self, attempt: int) -> str:
        """SHA-256 over the examples of an attempt, hexadecimal."""
        if attempt not in self._digests:
            examples, whole = self.of(attempt), hashlib.sha256(self.name.encode())
            for array in (
                examples.train_inputs,
                examples.train_targets,
                examples.test_inputs,
                examples.test_targets,
            ):
                whole.update(b"none" if array is None else f"{array.dtype} {array.shape}".encode())
                if array is not None:
                    whole.update(np.ascontiguousarray(array).data)
            self._digests[attempt] = whole.hexdigest()
        return self._digests[attempt]

    def are_those_of(self, found: Evidence) -> bool:
        """Whether an earlier run trained on just these examples."""
        return found.attempt is not None and found.data_digest == self.digest(found.attempt)
