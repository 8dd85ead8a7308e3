"""Whether a gradient is that of a function, tried by central differences in double precision."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

DIRECTIONS = 3  # along which all entries are moved together
ENTRIES = 4  # that are moved one by one, though nothing was found along the directions
STEP, SINGLE_STEP = 1e-5, 1e-2  # of an entry's scale; the second where the function is computed in float32
SMALLER = 8  # times, when a step met a kink
TRIES = 3
UNSEEN = 1e-10  # of an entry's scale: single precision does not see it
SINGLE_TOLERANCE = 1e-2
LEAST_SCALE = 0.1  # of the root mean square of x: the least scale of an entry
MOST_CALLS = 400

Array = Any
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class GradientFault:
    """An entry of a gradient that is wrong.

    Attributes:
        entry: Its place; () of a scalar.
        stated: What the gradient says there.
        measured: By how much the function changes there for each unit; of a kink, the nearer of its slopes.
    """

    entry: tuple[int, ...]
    stated: float
    measured: float

    @property
    def in_words(self) -> str:
        """A clause that goes on behind "the gradient": `is 0.5 at entry (1, 2); it should be 1`."""
        place = f" at entry {self.entry}" if self.entry else ""
        return f"is {self.stated:.4g}{place}; it should be {self.measured:.4g}"


def gradient_fault(
    f: Function, x: Array, analytic: Array, *, cotangent: Array = None, tolerance: float = 1e-4, seed: int = 0
) -> GradientFault | None:
    """An entry at which a gradient is not that of a function; None when it is the function's gradient.

    All entries are tried together, along a few random directions; only where these do not agree, or meet a
    kink, some are tried apart. A good gradient takes some 20 calls of the function whatever the size of x,
    a wrong one a few dozen. At a kink (of a ReLU at 0, say) any value between the two slopes is right.

    Args:
        f: The function, of what x is. It gives a number, or with a cotangent an array of its shape: plainly,
            as a value of a student's, or as the outcome of a call. It must give the same each time. What it
            computes in single precision is looked at more coarsely.
        x: A tensor or an array of floating point numbers, where the gradient is stated. The function gets
            it in float64.
        analytic: The gradient, of x's shape.
        cotangent: What each of the function's numbers is multiplied by before they are added up.
        tolerance: The largest difference, as a share of the gradient's size.
        seed: Of the directions.

    Returns:
        One of the wrong entries.

    Raises:
        ValueError: The shapes differ, or the function's value is not finite.
        Mismatch: The function asks the student's code, which raised or gave something else.
    """
    point, stated = _double(x), _double(analytic)
    if point.shape != stated.shape:
        raise ValueError(
            f"A gradient of shape {stated.shape} by an x of shape {point.shape}: compare shapes first."
        )
    if not point.size:
        return None
    trial = _Trial(_scalar(f, x, cotangent), point, stated, tolerance)
    return trial.fault(np.random.default_rng(seed))


def _double(value: Array) -> Array:
    """A tensor or an array as float64 of numpy's."""
    detached = value.detach() if hasattr(value, "detach") else value
    return np.asarray(detached, dtype=np.float64)


def _scalar(f: Function, x: Array, cotangent: Array) -> Callable[[Array], float]:
    """The function as one of float64 arrays that gives a number."""

    def given(point: Array) -> Any:
        if isinstance(x, np.ndarray | float):
            return point.copy()
        import torch

        return torch.from_numpy(point.copy())

    def number(point: Array) -> float:
        answer = f(given(point))
        value: Any = getattr(answer, "returned", answer)  # of an outcome
        is_students = hasattr(value, "label")
        if cotangent is not None:
            weights = _double(cotangent)
            numbers = _double(value.array(*weights.shape) if is_students else value)
            if numbers.shape != weights.shape:
                raise ValueError(f"The function gives {numbers.shape}, its cotangent is {weights.shape}.")
            result = float((numbers * weights).sum())
        else:
            single = _double(value.number() if is_students else value).reshape(-1)
            if len(single) != 1:
                raise ValueError(f"The function gives {len(single)} numbers: hand over a cotangent for them.")
            result = float(single[0])
        if not math.isfinite(result):
            raise ValueError(
                "The function is not finite near x, so that nothing can be said of its gradient."
            )
        return result

    return number


@dataclass(frozen=True)
class _Slopes:
    """The slopes of the function along a direction, on both sides of x."""

    left: float
    right: float
    is_kink: bool
    noise: float

    def off(self, stated: float) -> float:
        """How far a stated slope is from what it may be."""
        if self.is_kink:
            low, high = sorted((self.left, self.right))
            return max(low - stated, stated - high, 0.0)
        return abs(stated - (self.left + self.right) / 2)

    def nearest(self, stated: float) -> float:
        """The slope that is nearest to a stated one."""
        if self.is_kink:
            return min((self.left, self.right), key=lambda slope: abs(slope - stated))
        return (self.left + self.right) / 2


class _Trial:
    """Compares a stated gradient with the function's slopes."""

    def __init__(self, f: Callable[[Array], float], point: Array, stated: Array, tolerance: float) -> None:
        self._f, self._point = f, point
        self._shape, self._stated = point.shape, stated.reshape(-1)
        flat = np.abs(point).reshape(-1)
        mean_square = float(np.sqrt((flat**2).mean()))
        self._scales = np.maximum(flat, LEAST_SCALE * mean_square) if mean_square else np.ones_like(flat)
        self._calls = 0
        self._center = self._value(np.zeros_like(flat))
        single = self._value(UNSEEN * self._scales) == self._center
        self._step = SINGLE_STEP if single else STEP
        self._precision = float(np.finfo(np.float32 if single else np.float64).eps)
        self._tolerance = max(tolerance, SINGLE_TOLERANCE) if single else tolerance

    def fault(self, random: np.random.Generator) -> GradientFault | None:
        """An entry that is wrong, if there is one."""
        unknown = np.flatnonzero(~np.isfinite(self._stated))
        if len(unknown):
            return self._at(int(unknown[0]))
        count = len(self._stated)
        for _ in range(DIRECTIONS if count > 1 else 0):
            signs = random.choice((-1.0, 1.0), count) * random.uniform(0.5, 1.5, count)
            found = self._within(random.permutation(count), signs * self._scales)
            if found is not None:
                return found
        for entry in self._single_entries(random):
            if self._calls < MOST_CALLS:
                found = self._within(np.array([entry]), self._scales)
                if found is not None:
                    return found
        return None

    def _single_entries(self, random: np.random.Generator) -> Iterator[int]:
        """Entries that are tried one by one: the largest, the smallest, and some others."""
        sizes = np.abs(self._stated * self._scales)
        chosen = [
            int(sizes.argmax()),
            int(sizes.argmin()),
            *random.permutation(len(sizes))[:ENTRIES].tolist(),
        ]
        yield from list(dict.fromkeys(chosen))[:ENTRIES]

    def _within(self, entries: Array, direction: Array) -> GradientFault | None:
        """A wrong one among these entries, moved together, then in halves."""
        slopes = self._slopes(entries, direction)
        stated = self._stated[entries] * direction[entries]
        bound = self._tolerance * max(
            float(np.sqrt((stated**2).sum())), min(abs(slopes.left), abs(slopes.right))
        )
        if len(entries) == 1:
            is_wrong = slopes.off(float(stated[0])) > bound + slopes.noise
            return self._at(int(entries[0]), slopes, direction) if is_wrong else None
        if not slopes.is_kink and slopes.off(float(stated.sum())) <= bound + slopes.noise:
            return None
        # a direction that meets kinks proves nothing: those are looked at apart
        for half in np.array_split(entries, 2):
            if self._calls >= MOST_CALLS:
                return None
            found = self._within(half, direction)
            if found is not None:
                return found
        return None

    def _at(self, entry: int, slopes: _Slopes | None = None, direction: Array | None = None) -> GradientFault:
        if slopes is None or direction is None:
            direction = self._scales
            slopes = self._slopes(np.array([entry]), direction)
        stated, size = float(self._stated[entry]), float(direction[entry])
        place = tuple(int(axis) for axis in np.unravel_index(entry, self._shape)) if self._shape else ()
        return GradientFault(place, stated, slopes.nearest(stated * size) / size)

    def _slopes(self, entries: Array, direction: Array) -> _Slopes:
        """The slopes on both sides along a direction, by the largest step that meets no kink beside x."""
        move = np.zeros_like(self._scales)
        move[entries] = direction[entries]
        step, bend, middle = self._step, math.inf, math.nan
        for _ in range(TRIES):
            above, below = self._value(step * move), self._value(-step * move)
            right, left = (above - self._center) / step, (self._center - below) / step
            noise = 8 * self._precision * max(abs(above), abs(below), abs(self._center)) / step
            near = self._tolerance * max(abs(right), abs(left)) + noise
            # where a function is curved, its two slopes come nearer with the step; at a kink they stay apart
            is_curved = abs(right - left) < bend / 2 and abs((right + left) / 2 - middle) <= near / 2
            if abs(right - left) <= near or is_curved:
                return _Slopes(left, right, False, noise)
            step, bend, middle = step / SMALLER, abs(right - left), (right + left) / 2
        return _Slopes(left, right, True, noise)

    def _value(self, move: Array) -> float:
        self._calls += 1
        return self._f(self._point + move.reshape(self._shape))
