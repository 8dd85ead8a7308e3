"""Validators of sent or stored records, each made once, which takes as long as using it 100 times."""

from typing import Any

from pydantic import TypeAdapter

_made: dict[Any, TypeAdapter[Any]] = {}


def validator(kind: Any) -> TypeAdapter[Any]:
    """The validator of a type.

    A process that forks others asks for it beforehand, so that all of them have it.
    """
    if kind not in _made:
        _made[kind] = TypeAdapter(kind)
    return _made[kind]
