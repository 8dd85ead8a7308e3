"""The images that a call was given, whatever gives them: a loader, an iterator, a list."""

from typing import Any

FIRST = 20  # batches that are read of what is looped over, which may have no end
DEEPEST = 5  # batches in lists in dictionaries
MANY = 1000  # items of a list or a dictionary


def image_batches(student: Any, call: Any) -> list[Any]:
    """The batches of images that a call was given, as tensors (batch, channels, height, width).

    A tensor will do, and so will an array, a list, a dictionary, a loader, a generator, and any of these in
    another. An image by itself is a batch of one.

    Args:
        student: Whose call it is.
        call: As `calls_of` gives it, with `args` and `kwargs`.
    """
    return [batch for value in (*call.args, *call.kwargs.values()) for batch in _batches(student, value)]


def _batches(student: Any, value: Any, deepest: int = DEEPEST) -> list[Any]:
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor | np.ndarray):
        images = torch.as_tensor(value)
        return [images[None] if images.ndim == 3 else images] if images.ndim in (3, 4) else []
    if getattr(value, "kind", "") == "object":
        value = _looped_over(student, value)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple) or not deepest:
        return []
    return [batch for each in value[:MANY] for batch in _batches(student, each, deepest - 1)]


def _looped_over(student: Any, thing: Any) -> list[Any] | tuple[Any, ...]:
    """What an object gives that is looped over: by `__iter__`, or else by `__len__` and `__getitem__`."""
    iterated = student.attempted(lambda: thing.call("__iter__").returned)
    if iterated is None:
        length = student.attempted(lambda: thing.call("__len__").returned.whole_number()) or 0
        return _each(student, min(length, FIRST), lambda number: thing.call("__getitem__", number).returned)
    if isinstance(iterated.plain, list | tuple):  # an iterator of the standard kinds comes as a list
        return iterated.plain
    iterator = student.attempted(iterated.thing)
    if iterator is None:
        return []
    return _each(student, FIRST, lambda _: iterator.call("__next__").returned)


def _each(student: Any, count: int, item: Any) -> list[Any]:
    """The values of the items, up to the first one that cannot be had."""
    found: list[Any] = []
    while len(found) < count:
        value = student.attempted(lambda: item(len(found)))
        if value is None:
            break
        found.append(value.plain)
    return found
