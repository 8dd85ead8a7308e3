"""Validators of what crosses a pipe, each made once: making one takes longer than using it a hundred times."""

import functools
from typing import Any

from pydantic import TypeAdapter


@functools.cache
def validator(kind: Any) -> TypeAdapter[Any]:
    """The validator of a type. A process that forks others asks for it before, so that all of them have it."""
    return TypeAdapter(kind)
