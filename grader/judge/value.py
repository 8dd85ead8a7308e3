"""A value from a student's code: a check says what it should be, and gets it in that form.

It decides kinds, shapes, ranges and finiteness, and words the difference. The check decides whether the
value is right.

Tests: tests/judge/test_calls.py, tests/docs/test_checks_page.py
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.domain.formatting import named, quoted
from grader.kit import Mismatch
from grader.protocol.trees import TooMuch

MAX_SHOWN = 8  # keys that a message names
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


class Value:
    """A value of a student's, of any kind.

    Each method expects a kind of value and returns it, or raises a Mismatch that says what it is instead.

    Attributes:
        plain: The unpacked value: numbers, texts, containers, tensors, arrays, and things; not checked.
        label: What it is, as a clause: "what `mixup(images, labels)` returned".
    """

    def __init__(self, plain: Any, label: str) -> None:
        self.plain = plain
        self.label = label

    @property
    def in_words(self) -> str:
        """What it is: `a list of 3 values`."""
        return described(self.plain)

    def wrong(self, should_be: str, hint: str = "") -> Mismatch:
        """Why it is not what it should be."""
        return Mismatch(f"{_capital(self.label)} is {self.in_words}; it should be {should_be}.", hint=hint)

    def tensor(
        self, *shape: int | None, whole: bool = False, finite: bool = True, truth: bool = False
    ) -> Tensor:
        """A tensor; a NumPy array will do, and so will numbers in a list, or in lists of equal length.

        Args:
            shape: What it must be; None for a side of any length. Without arguments: any shape.
            whole: Of whole numbers, as labels and tokens are; else floating point.
            finite: No NaN and no infinity among them.
            truth: Of True and False, as masks are; not of numbers.

        Raises:
            Mismatch: It is something else.
        """
        numbers = "whole numbers" if whole else "floating point numbers"
        kind = "truth values (bool)" if truth else numbers
        expected = f"a tensor of {kind}" + (f" of shape {_shape(shape)}" if shape else "")
        value = self.plain
        if isinstance(value, list | tuple) and _are_numbers(value):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            value = torch.from_numpy(value)
        if not isinstance(value, Tensor):
            hint = "Does the function end with a return statement?" if value is None else ""
            raise self.wrong(expected, hint)
        self._checked(tuple(value.shape), shape, expected)
        if truth:
            if value.dtype is not torch.bool:
                raise self.wrong(expected)
            return value
        if value.is_complex() or value.is_floating_point() == whole:
            raise self.wrong(expected)
        if not whole and value.dtype in (torch.float16, torch.bfloat16):
            value = value.float()  # CPUs support few operations on half precision
        if finite and not whole and not bool(torch.isfinite(value).all()):
            raise Mismatch(f"{_capital(self.label)} holds numbers that are not finite (NaN or infinity).")
        return value

    def array(self, *shape: int | None, whole: bool = False, finite: bool = True, truth: bool = False) -> Any:
        """A NumPy array, as `tensor` gives a tensor: float64, int64 with `whole`, or bool with `truth`.

        Raises:
            Mismatch: It is something else.
        """
        tensor = self.tensor(*shape, whole=whole, finite=finite, truth=truth)
        numbers = np.int64 if whole else np.float64
        return tensor.numpy().astype(np.bool_ if truth else numbers)

    def _checked(self, actual_shape: tuple[int, ...], shape: Sequence[int | None], expected: str) -> None:
        fits = len(actual_shape) == len(shape) and all(
            side in (None, actual) for side, actual in zip(shape, actual_shape, strict=False)
        )
        if shape and not fits:
            raise self.wrong(expected)

    def number(self, low: float | None = None, high: float | None = None, *, finite: bool = True) -> float:
        """A number; a tensor or an array of a single one will do.

        Raises:
            Mismatch: It is something else, or outside of `low` to `high`.
        """
        value = self.plain
        if isinstance(value, Tensor | np.ndarray) and int(np.prod(value.shape)) == 1:
            (value,) = value.reshape(-1).tolist()  # an array of texts is one of objects
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong("a number")
        number = float(value) if abs(value) < 1e300 or isinstance(value, float) else float("inf")
        if finite and not np.isfinite(number):
            raise Mismatch(f"{_capital(self.label)} is not finite (NaN or infinity).")
        if (low is not None and number < low) or (high is not None and number > high):
            bounds = f"at least {low:g}" if high is None else f"at most {high:g}"
            raise self.wrong(f"from {low:g} to {high:g}" if None not in (low, high) else bounds)
        return number

    def whole_number(self, low: int | None = None, high: int | None = None) -> int:
        """A whole number, not `2.0`.

        Raises:
            Mismatch: It is something else, or outside of `low` to `high`.
        """
        value = self.plain
        if isinstance(value, Tensor | np.ndarray) and int(np.prod(value.shape)) == 1:
            (value,) = value.reshape(-1).tolist()  # an array of texts is one of objects
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong("a whole number")
        self.number(low, high)
        return value

    def truth(self) -> bool:
        """True or False; a tensor or an array of a single truth value will do.

        Raises:
            Mismatch: It is something else.
        """
        value = self.plain
        if isinstance(value, Tensor | np.ndarray) and int(np.prod(value.shape)) == 1:
            (value,) = value.reshape(-1).tolist()  # an array of texts is one of objects
        if not isinstance(value, bool):
            raise self.wrong("True or False")
        return value

    def text(self) -> str:
        """A text.

        Raises:
            Mismatch: It is something else.
        """
        if not isinstance(self.plain, str):
            raise self.wrong("a text")
        return self.plain

    def nothing(self) -> None:
        """None.

        Raises:
            Mismatch: It is not None.
        """
        if self.plain is not None:
            raise self.wrong("nothing (None)")

    def items(self, count: int | None = None, what: str = "values") -> list["Value"]:
        """The values of a list, of a tuple, or along the first axis of a tensor or an array.

        Args:
            count: How many there must be.
            what: What they are, in the plural.

        Raises:
            Mismatch: It is something else, or there are more or fewer.
        """
        expected = f"{count} {what}" if count is not None else f"a list of {what}"
        value = self.plain
        if isinstance(value, Tensor | np.ndarray) and value.ndim:
            value = list(value)
        if not isinstance(value, list | tuple) or (count is not None and len(value) != count):
            raise self.wrong(expected)
        return [Value(item, f"the {_ordinal(number)} of {self.label}") for number, item in enumerate(value)]

    def at(self, key: str | int) -> "Value":
        """The value under a key of a dictionary.

        Raises:
            Mismatch: It is not a dictionary, or has no such key.
        """
        value = self.plain
        if not isinstance(value, dict):
            raise self.wrong(f"a dictionary with the key {_key(key)}")
        if key not in value:
            keys = ", ".join(_key(present) for present in list(value)[:MAX_SHOWN]) or "none"
            raise Mismatch(f"{_capital(self.label)} has no key {_key(key)}; it has {keys}.")
        return Value(value[key], f"{_key(key)} in {self.label}")

    def mapping(self, keys: Collection[str | int]) -> dict[str | int, "Value"]:
        """The values of a dictionary that has these keys, and perhaps others.

        Raises:
            Mismatch: It is not a dictionary, or lacks one of them.
        """
        return {key: self.at(key) for key in keys}

    def thing(self, kind: str = "") -> Any:
        """A thing that stays in the worker: a module, a function, an object of a class.

        Args:
            kind: What it must be: `module`, `class`, `function` or `object`; empty: any.

        Raises:
            Mismatch: It is something else.
        """
        if not is_thing(self.plain) or (kind and self.plain.kind != kind):
            raise self.wrong(f"a {kind}" if kind != "object" and kind else "an object")
        return self.plain


def is_thing(value: Any) -> bool:
    """Whether a value stays in the worker."""
    return getattr(type(value), "stays", False) is True


def described(value: Any) -> str:
    """What a value is, in a few words."""
    match value:
        case None:
            return "nothing (None)"
        case TooMuch():
            return value.in_words
        case bool() | float():
            return str(value)
        case int():
            return str(value) if abs(value) < 10**20 else "a very large number"
        case str():
            return f"the text {quoted(value)}"
        case Tensor():
            return f"a tensor of {str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
        case np.ndarray():
            return f"an array of {value.dtype.name} of shape {value.shape}"
        case list() | tuple() | frozenset():
            kind = {list: "list", tuple: "tuple"}.get(type(value), "set")
            return f"a {kind} of {len(value)} {'value' if len(value) == 1 else 'values'}"
        case Mapping():
            return f"a dictionary with {len(value)} {'key' if len(value) == 1 else 'keys'}"
        case bytes():
            return f"{len(value)} bytes"
    return f"a {named(value.type)}" if is_thing(value) else f"a {named(type(value).__name__)}"


def _shape(shape: Sequence[int | None]) -> str:
    sides = ", ".join("any" if side is None else str(side) for side in shape)
    return f"({sides},)" if len(shape) == 1 else f"({sides})"


def _ordinal(number: int) -> str:
    return _ORDINALS[number] if number < len(_ORDINALS) else f"{number + 1}th"


def _key(key: object) -> str:
    return quoted(key) if isinstance(key, str) else quoted(repr(key)[:40])


def _capital(label: str) -> str:
    return label[:1].upper() + label[1:]


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a list holds only numbers, or lists of them of equal length."""
    if values and all(isinstance(value, list | tuple) for value in values):
        return len({len(value) for value in values}) == 1 and all(map(_are_numbers, values))
    return bool(values) and all(isinstance(value, int | float) for value in values)
