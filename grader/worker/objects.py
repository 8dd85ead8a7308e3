"""Kept objects by handle: what was made for the judge and cannot be sent.

It assigns one handle to each object, up to a bound. `component`, `invocation` and `tree_values` decide what
is kept.

Tests: tests/judge/test_calls.py
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.worker.standin import StandIns

MOST_OBJECTS = 20_000


@dataclass(frozen=True)
class Kept:
    """One object.

    Attributes:
        value: It.
        stand_ins: Those in it, which record what is done to them.
        replacements: What stands in the places of the student's names while it is used.
    """

    value: Any
    stand_ins: StandIns = field(default_factory=StandIns)
    replacements: Mapping[str, Any] = field(default_factory=dict)


class Objects:
    """Objects by handle; each has one."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._handles: dict[int, int] = {}  # by the identity of an object, which lives as long as this

    def keep(self, kept: Kept) -> int:
        """The handle of an object that is new.

        Raises:
            MemoryError: There are too many.
        """
        if len(self._kept) >= MOST_OBJECTS:
            raise MemoryError("too many objects are kept")
        self._kept.append(kept)
        self._handles[id(kept.value)] = len(self._kept) - 1
        return len(self._kept) - 1

    def handle_of(self, value: Any, around: Kept | None = None) -> int:
        """The handle of an object, which is kept from now on.

        Args:
            around: What it came from, whose surroundings are its own.
        """
        known = self._handles.get(id(value))
        if known is not None:
            return known
        return self.keep(
            Kept(value) if around is None else Kept(value, around.stand_ins, around.replacements)
        )

    def __getitem__(self, handle: int) -> Kept:
        return self._kept[handle]
