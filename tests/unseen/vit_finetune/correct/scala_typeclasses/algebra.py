"""What I miss from Scala: options, eithers, monoids with folds, lazy unfolding, and a type class or two.

Nothing in here knows of images or models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch

A = TypeVar("A")
B = TypeVar("B")
S = TypeVar("S")


# --- sealed trait Option[+A] ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Some(Generic[A]):
    get: A


@dataclass(frozen=True)
class Nothing:
    pass


Option = Some | Nothing


# --- sealed trait Either[+L, +R] --------------------------------------------------------------------------


@dataclass(frozen=True)
class Left(Generic[A]):
    why: A


@dataclass(frozen=True)
class Right(Generic[A]):
    value: A


def get_or_raise(either, error: type[Exception]):
    """The border to Python, where failures are thrown."""
    match either:
        case Right(value):
            return value
        case Left(why):
            raise error(why)


# --- trait Monoid[A] --------------------------------------------------------------------------------------


class Monoid(Protocol):
    """`zero()` is neutral and `+` is associative."""

    @classmethod
    def zero(cls): ...

    def __add__(self, other): ...


def fold_map(monoid: type, function: Callable, items: Iterable):
    """foldMap: maps each item into the monoid, and sums up."""
    return reduce(lambda total, item: total + function(item), items, monoid.zero())


def unfold(state: S, step: Callable[[S], Option]) -> Iterator:
    """LazyList.unfold: `step` gives Some((item, next state)), or Nothing at the end."""
    while True:
        match step(state):
            case Some((item, following)):
                yield item
                state = following
            case Nothing():
                return


# --- type class Integers[A]: whatever can be seen as a vector of whole numbers ---------------------------


@singledispatch
def integers(values) -> np.ndarray:
    return np.fromiter((int(v) for v in values), dtype=np.int64)


@integers.register
def _(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64)


@integers.register
def _(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().numpy().astype(np.int64)


# --- type class Reals[A] ----------------------------------------------------------------------------------


@singledispatch
def reals(values) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


@reals.register
def _(values: torch.Tensor) -> np.ndarray:
    return values.detach().cpu().numpy().astype(np.float64)
