"""Numbers put in place into the tensors and arrays that an object holds.

Names and shapes must be the same, else it raises. The check decides which numbers are put where.

Tests: tests/judge/test_calls.py
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor


def fill(target: Any, content: Any) -> None:
    """Put the numbers of a tree of arrays into one of the same form, in place.

    Args:
        target: Tensors and arrays in lists, tuples and dictionaries, as an object holds them.
        content: The same with other numbers.

    Raises:
        ValueError: They are not of the same form.
    """
    if isinstance(target, Tensor):
        tensor = torch.as_tensor(content)
        _require_shape(tensor.shape, target.shape)
        with torch.no_grad():
            target.copy_(tensor)
    elif isinstance(target, np.ndarray):
        array = np.asarray(content)
        _require_shape(array.shape, target.shape)
        target[...] = array
    elif isinstance(target, Mapping) and isinstance(content, Mapping):
        if target.keys() != content.keys():
            raise ValueError("weights of other names")
        for name, each in target.items():
            fill(each, content[name])
    elif isinstance(target, list | tuple | Iterator) and isinstance(content, list | tuple):
        for each, given in zip(target, content, strict=True):
            fill(each, given)
    elif target is not None or content is not None:
        raise ValueError(f"a {type(target).__name__} cannot be filled: weights are tensors and arrays")


def _require_shape(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if tuple(given) != tuple(wanted):
        raise ValueError(f"weights of shape {tuple(given)} for {tuple(wanted)}")
