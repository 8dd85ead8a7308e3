"""Equal parts of a class's records kept once in memory: most of what they say, they all say."""

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

Record = TypeVar("Record")


class SharedParts:
    """What records had in common so far.

    A hundred submissions pass the same checks, have the same layers and lack the same parts: each record
    repeats the same texts. Records are frozen, so it cannot be noticed that two hold the same part.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def of(self, record: Record) -> Record:
        """An equal record that shares its parts with those before it.

        Args:
            record: A frozen dataclass. What is mutable in it stays its own.
        """
        shared: Record = self._shared(record)[0]
        return shared

    def _shared(self, part: Any) -> tuple[Any, bool]:
        """The part, and whether every record has the same object for it."""
        if part is None or isinstance(part, int):
            return part, True
        if isinstance(part, str):
            # a word and a member of an enumeration can be equal
            return self._known.setdefault((type(part), part), part), True
        if isinstance(part, tuple):
            inner = [self._shared(value) for value in part]
            part = tuple(value for value, _ in inner)
        elif is_dataclass(part) and not isinstance(part, type):
            inner = [self._shared(getattr(part, field.name)) for field in fields(part)]
            names = (field.name for field in fields(part))
            part = type(part)(**dict(zip(names, (value for value, _ in inner), strict=True)))
        else:  # mutable, or measured: hardly ever the same twice
            return part, False
        if not all(same for _, same in inner):
            return part, False
        # the parts of what is kept live as long, so that no other has their identity
        own = ((type(value), value) if isinstance(value, int) else id(value) for value, _ in inner)
        key = (type(part), *own)
        return self._known.setdefault(key, part), True
