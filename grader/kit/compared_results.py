"""Results compared with what is expected, and how a check says that something is wrong.

It decides when two tensors are the same, whether a gradient is that of a function (by central differences in
double precision), and on which weights an output does not depend. A spare weight must not make a component
unreadable: one without effect is left out, and one with an effect is held where it does least. `Mismatch`
says that code is wrong, and `Undecided` that a person must look. It gives no points.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from grader.domain.errors import Interruption
from grader.domain.evidence import FindingKind

Tensor = Any  # torch is imported where it is used: a data set that uses the kit must not pay for it


def same(actual: Tensor, expected: Tensor, *, tolerance: float = 1e-4) -> bool:
    """Whether two tensors agree, relative to the size of the expected one.

    float32 results of the sizes used in checks agree to about 1e-6; mistakes differ by more than 1e-2.
    """
    if tuple(actual.shape) != tuple(expected.shape):
        return False
    if not expected.numel():
        return True
    expected = expected.to(actual.dtype)
    scale = max(float(expected.abs().max()), 1e-3)
    if not math.isfinite(scale):
        return False  # everything would be within a share of infinity
    return bool((actual - expected).abs().max() <= tolerance * scale)


def difference(actual: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the size of the expected tensor; infinite if the shapes differ."""
    if tuple(actual.shape) != tuple(expected.shape):
        return float("inf")
    scale = max(float(expected.abs().max()), 1e-3)
    return float((actual - expected.to(actual.dtype)).abs().max()) / scale


# --- mismatch --------------------------------------------------------------------------------------------


class Cause(StrEnum):
    """A known fact because of which further failed checks of a part say nothing new."""

    NOT_LOADED = "not_loaded"  # the part, or the whole file, could not be loaded
    NOT_IMPLEMENTED = "not_implemented"  # the stub was not written yet
    RAISED = "raised"  # an exception at one of the student's lines
    NO_TENSOR = "no_tensor"  # something else was returned
    WRONG_SHAPE = "wrong_shape"
    WRONG_TYPE = "wrong_type"  # for example, a tensor of integers
    NOT_FINITE = "not_finite"
    RANDOM = "random"  # the same input gives another output each time
    CONSTANT = "constant"  # the output is the same for any input, which much else is true of
    NOT_CALLED = "not_called"  # the fake of another part was not called
    SIZE = "size"  # one that cannot be done


class Mismatch(Interruption, AssertionError):
    """The student's code does something other than it should.

    Args:
        message: What is wrong, in a sentence or two for the student, without hidden values.
        hint: One thing to try.
        diagnosis: The id of the mistake that was recognized, e.g. `loss_summed`; or what the grader itself
            saw, independently of what the check tests.
        where: The place in the student's file, when it is better known than the component's first line.
        cause: The kind of cause, if other checks of the same component can fail because of it.
        look_for: Kinds of code, as in the `Look for:` of a known mistake: if one of them occurs only once in
            what is judged, that line is shown. They take precedence over the mistake's own.
        concerns: What the cause is about (a part, a line, a size); empty: the component. If two mismatches of
            one component have the same cause about the same thing, the later is folded under the first.

    Raises:
        TypeError: The message or another text is none, such as the error that a check caught.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        diagnosis: str | FindingKind | None = None,
        where: str = "",
        look_for: str = "",
        cause: Cause | None = None,
        concerns: str = "",
    ) -> None:
        texts = {"message": message, "hint": hint, "where": where, "look_for": look_for, "concerns": concerns}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise TypeError(f"Mismatch: {name} is a {type(text).__name__}, and must be a text")
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.diagnosis = diagnosis
        self.where = where
        self.look_for = look_for
        self.cause = cause
        self.concerns = concerns

    def again(self) -> "Mismatch":
        """A copy, for another check that uses the same shared result."""
        return Mismatch(
            self.message,
            hint=self.hint,
            diagnosis=self.diagnosis,
            where=self.where,
            look_for=self.look_for,
            cause=self.cause,
            concerns=self.concerns,
        )


class Undecided(Interruption):
    """The check cannot tell: a person must look. Never a pass and never a zero."""


# --- gradients -------------------------------------------------------------------------------------------


DIRECTIONS = 3  # along which all entries are moved together
ENTRIES = 4  # that are also moved one by one if nothing was found along the directions
STEP, SINGLE_STEP = 1e-5, 1e-2  # of an entry's scale; the second if the function computes in float32
SMALLER = 8  # times, when a step met a kink
TRIES = 3
UNSEEN = 1e-10  # of an entry's scale: single precision cannot resolve it
SINGLE_TOLERANCE = 1e-2
LEAST_SCALE = 0.1  # of the root mean square of x: the least scale of an entry
MOST_CALLS = 400

Array = Any
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class GradientFault:
    """An entry of a gradient that is wrong.

    Attributes:
        entry: Its index; () for a scalar.
        stated: What the gradient says there.
        measured: The function's slope there; at a kink, the nearer one.
    """

    entry: tuple[int, ...]
    stated: float
    measured: float

    @property
    def in_words(self) -> str:
        """A clause that follows "the gradient": `is 0.5 at entry (1, 2); it should be 1`."""
        place = f" at entry {self.entry}" if self.entry else ""
        return f"is {self.stated:.4g}{place}; it should be {self.measured:.4g}"


def gradient_fault(
    f: Function, x: Array, analytic: Array, *, cotangent: Array = None, tolerance: float = 1e-4, seed: int = 0
) -> GradientFault | None:
    """An entry at which a gradient is not that of a function; None when it is the function's gradient.

    All entries are tried together, along a few random directions; only if these do not agree, or meet a kink,
    some are tried separately. A good gradient takes some 20 calls of the function whatever the size of x,
    a wrong one a few dozen. At a kink (of a ReLU at 0, say) any value between the two slopes is right.

    Args:
        f: The function of x. It gives a number, or with a cotangent an array of its shape: plainly, as a
            value from a student's code, or as the outcome of a call. It must be deterministic. If it computes
            in single precision, larger steps are used.
        x: A tensor or an array of floating point numbers, where the gradient is stated. The function gets
            it in float64.
        analytic: The gradient, of x's shape.
        cotangent: What the function's numbers are multiplied by before they are summed.
        tolerance: The largest difference, as a share of the gradient's size.
        seed: For the directions.

    Returns:
        One of the wrong entries.

    Raises:
        ValueError: The shapes differ, or the function's value is not finite.
        Mismatch: The function calls the student's code, which raised or gave something else.
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
    """A tensor or an array as a NumPy array of float64."""
    detached = value.detach() if hasattr(value, "detach") else value
    return np.asarray(detached, dtype=np.float64)


def _scalar(f: Function, x: Array, cotangent: Array) -> Callable[[Array], float]:
    """The function as one from float64 arrays to a number."""

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
            raise ValueError("The function is not finite near x, so nothing can be said about its gradient.")
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
        """How far a stated slope is from the permitted ones."""
        if self.is_kink:
            low, high = sorted((self.left, self.right))
            return max(low - stated, stated - high, 0.0)
        return abs(stated - (self.left + self.right) / 2)

    def nearest(self, stated: float) -> float:
        """The permitted slope that is nearest to a stated one."""
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
            return self._fault_at(int(unknown[0]))
        count = len(self._stated)
        for _ in range(DIRECTIONS if count > 1 else 0):
            signs = random.choice((-1.0, 1.0), count) * random.uniform(0.5, 1.5, count)
            wrong_entry = self._within(random.permutation(count), signs * self._scales)
            if wrong_entry is not None:
                return wrong_entry
        for entry in self._single_entries(random):
            if self._calls < MOST_CALLS:
                wrong_entry = self._within(np.array([entry]), self._scales)
                if wrong_entry is not None:
                    return wrong_entry
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
        """A wrong entry among these, which are moved together, then in halves."""
        slopes = self._slopes(entries, direction)
        stated = self._stated[entries] * direction[entries]
        bound = self._tolerance * max(
            float(np.sqrt((stated**2).sum())), min(abs(slopes.left), abs(slopes.right))
        )
        if len(entries) == 1:
            is_wrong = slopes.off(float(stated[0])) > bound + slopes.noise
            return self._fault_at(int(entries[0]), slopes, direction) if is_wrong else None
        if not slopes.is_kink and slopes.off(float(stated.sum())) <= bound + slopes.noise:
            return None
        # a direction that meets kinks proves nothing: its halves are tried separately
        for half in np.array_split(entries, 2):
            if self._calls >= MOST_CALLS:
                return None
            wrong_entry = self._within(half, direction)
            if wrong_entry is not None:
                return wrong_entry
        return None

    def _fault_at(
        self, entry: int, slopes: _Slopes | None = None, direction: Array | None = None
    ) -> GradientFault:
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
            # on a curve, the two slopes converge as the step shrinks; at a kink they stay apart
            is_curved = abs(right - left) < bend / 2 and abs((right + left) / 2 - middle) <= near / 2
            if abs(right - left) <= near or is_curved:
                return _Slopes(left, right, False, noise)
            step, bend, middle = step / SMALLER, abs(right - left), (right + left) / 2
        return _Slopes(left, right, True, noise)

    def _value(self, move: Array) -> float:
        self._calls += 1
        return self._f(self._point + move.reshape(self._shape))


# --- spare -----------------------------------------------------------------------------------------------


MOST_TRIED = 24  # weights whose effect is tried: no usual component has more


class Settable(Protocol):
    """A component whose weights can be set."""

    def __call__(self, x: Tensor) -> Tensor:
        """The output for an input."""

    def set_weights(self, values: Mapping[str, Tensor]) -> None:
        """Overwrite parameters by name."""


def with_effect(component: Settable, x: Tensor, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights on which the output for x depends; before and afterwards the component holds `weights`."""
    y = component(x)
    effective = {}
    for number, (name, value) in enumerate(weights.items()):
        if number < MOST_TRIED:
            component.set_weights({name: value + 1 + value.abs()})
            moved = component(x)
            component.set_weights({name: value})
            if same(moved, y):
                continue
        effective[name] = value
    return effective


def at_rest(
    component: Settable, weights: Mapping[str, Tensor], initial: Mapping[str, Tensor], needed: int
) -> Iterator[dict[str, Tensor]]:
    """The weights without spare ones, which the component now holds at values where they do least.

    Args:
        weights: What the component holds, before and afterwards.
        initial: What its constructor set.
        needed: How many of the largest matrices cannot all be spare.
    """
    matrices = sorted((n for n, v in weights.items() if v.ndim > 1), key=lambda n: -weights[n].numel())
    together = [name for name in weights if name not in matrices[:needed]]
    groups = [[name] for name in list(weights)[:MOST_TRIED]]
    if len(together) > 1:
        groups.append(together)
    for names in groups:
        for rest in _rests([weights[name] for name in names], [initial[name] for name in names]):
            component.set_weights(dict(zip(names, rest, strict=True)))
            yield {name: value for name, value in weights.items() if name not in names}
        component.set_weights({name: weights[name] for name in names})


def _rests(values: list[Tensor], initial: list[Tensor]) -> Iterator[list[Tensor]]:
    """Values at which weights do least, the likeliest first."""
    yield [value * 0 for value in values]
    yield [value.to(held.dtype) for value, held in zip(initial, values, strict=True)]
    yield [value * 0 + 1 for value in values]
    if all(value.ndim >= 2 and value.shape[-1] == value.shape[-2] for value in values):
        import torch

        yield [torch.eye(value.shape[-1], dtype=value.dtype).expand(value.shape).clone() for value in values]
