"""Measures of a submission's models, and the scales of their numbers.

It holds measures, the calls by which models are made and trained, and studies, which are handed in as a
table of trainings, some rows of which are trained again. It holds what an assignment asks for and the
results of a study's rows; it trains nothing and gives no points.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# absolute for shares, relative for other values
NEAR_THRESHOLD = 0.04  # so near the threshold, another seed might be on its other side
WIDE = 0.10  # if trainings that differ only in their seeds are so far apart, their mean says little


_MAX_SHOWN = 40  # characters of a value in the text of a call


@dataclass(frozen=True)
class ProgramRoles:
    """The names of a program by role, if the assignment states them; empty: it does not.

    Attributes:
        model: The graded class of the model; by default the last one.
        trainer: The graded function that trains for an epoch; by default the one that gets the optimizer.
        evaluator: The graded function that measures; by default all others may.
        final: The top-level variable of the model that counts.
    """

    model: str = ""
    trainer: str = ""
    evaluator: str = ""
    final: str = ""


NO_ROLES = ProgramRoles()


@dataclass(frozen=True)
class Scale:
    """How the numbers of a measure are read.

    Attributes:
        lower_is_better: As for a loss, or for bits per character.
        is_share: Whether they are shares, 0 to 1, like an accuracy.
    """

    lower_is_better: bool = False
    is_share: bool = True

    def is_value(self, value: float | None) -> bool:
        """Whether a number can be a measurement."""
        return value is not None and math.isfinite(value) and (not self.is_share or 0 <= value <= 1)

    def reaches(self, value: float, asked: float) -> bool:
        """Whether a value is as good as what is asked for."""
        return value <= asked if self.lower_is_better else value >= asked

    def better(self, value: float, other: float) -> float:
        """The better one of two values."""
        return min(value, other) if self.lower_is_better else max(value, other)

    def worse(self, value: float, other: float) -> float:
        """The worse one of two values."""
        return max(value, other) if self.lower_is_better else min(value, other)

    def best_of(self, interval: tuple[float, float]) -> float:
        """The better end of an interval."""
        return self.better(*interval)

    def is_near(self, value: float, asked: float) -> bool:
        """Whether a value is so near the threshold that another seed might be on its other side."""
        return abs(value - asked) <= NEAR_THRESHOLD * (1.0 if self.is_share else abs(asked)) + 1e-9

    def are_wide(self, values: tuple[float, ...]) -> bool:
        """Whether values that should be the same are so far apart that their mean says little."""
        if len(values) < 2:
            return False
        unit = 1.0 if self.is_share else max(map(abs, values))
        return max(values) - min(values) > WIDE * unit + 1e-9

    def shown(self, value: float) -> str:
        """A value as people write it: `80.6 %`, `1.83`."""
        if self.is_share:
            return f"{value * 100:.1f}".removesuffix(".0") + " %"
        return f"{value:.4g}"


SHARE = Scale()


@dataclass(frozen=True)
class TrainingCall:
    """How a model is made, trained and queried by calling what students wrote.

    Values may be placeholders, such as `{model}` and `{inputs}`: `grader.course.measures` lists them
    (`PLACEHOLDERS`).

    Attributes:
        model: The graded class, or the graded function, that makes the model.
        arguments: Its arguments, by the stub's parameters.
        function: The graded function that trains.
        given: Its arguments, by the stub's parameters.
        weights: The model's attribute or method that gives its numbers as a tree of tensors or arrays;
            empty: a module's `state_dict`.
        answers: The model's method that answers for inputs; empty: the model itself is called.
        answers_with: Further arguments of that method.
        batch_size: Of the loaders that are passed.
        tensors: Whether data are passed as PyTorch tensors; otherwise as NumPy arrays.
        standardized: Whether each channel of the images has mean 0 and deviation 1 over the training images;
            otherwise they are shares of one.
        accepts: Ids of mistakes with which the measured value still counts: they are reported, and no person
            needs to decide.
    """

    model: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    weights: str = ""
    answers: str = ""
    answers_with: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 64
    tensors: bool = True
    standardized: bool = False
    accepts: tuple[str, ...] = ()

    @property
    def epochs(self) -> int | None:
        """How many epochs it asks for, if it says so: one number, or one for each stage."""
        stated = self.given.get("epochs")
        counts = stated if isinstance(stated, list) else [stated]
        return sum(counts) if counts and all(type(count) is int for count in counts) else None


@dataclass(frozen=True)
class Measure:
    """A model that is trained, and how it is measured.

    Attributes:
        id: The name of the measurement in the rubric and the results.
        title: The name for people: `ResNet-18`; empty if it is the only one.
        roles: How the program is read for it.
        weights: The part of the names of its weights after the common stem (`_resnet`), if several models are
            trained.
        function: A function of the assignment's `measures.py`: (outputs, targets) -> the number; empty: the
            share of outputs whose largest entry is the target's.
        scale: How that number is read.
        call: How the model is trained by a call; None: as the program itself trains it.
        reference: The value that the reference reaches under the same budget; None: it is not stated.
        most_epochs: The most epochs that it may be trained for; None: as many as the time allows.
        most_multiply_adds: The most that the model may take for an image; None: as many as the time allows.
        note: What students should know about its curves; empty: nothing.
    """

    id: str
    title: str = ""
    roles: ProgramRoles = NO_ROLES
    weights: str = ""
    function: str = ""
    scale: Scale = SHARE
    call: TrainingCall | None = None
    reference: float | None = None
    most_epochs: int | None = None
    most_multiply_adds: int | None = None
    note: str = ""


def placeholder_in(value: Any) -> str:
    """The name that a placeholder stands for, `depth` for `{depth}`; empty if it is not a placeholder."""
    return value[1:-1] if isinstance(value, str) and value.startswith("{") and value.endswith("}") else ""


def placeholders_in(value: Any) -> set[str]:
    """The names that the placeholders in nested values stand for; keys of mappings are none."""
    if isinstance(value, Mapping):
        return {name for element in value.values() for name in placeholders_in(element)}
    if isinstance(value, list):
        return {name for element in value for name in placeholders_in(element)}
    return {placeholder_in(value)} - {""}


def call_in_words(call: TrainingCall) -> str:
    """A call as people write it: `fit(model, inputs, epochs=3)`."""
    arguments = []
    for name, value in call.given.items():
        if placeholder := placeholder_in(value):
            arguments.append(placeholder if placeholder == name else f"{name}={placeholder}")
        else:
            text = repr(value)
            arguments.append(f"{name}={text if len(text) <= _MAX_SHOWN else '...'}")
    return f"`{call.function}({', '.join(arguments)})`"


# --- study table -----------------------------------------------------------------------------------------


FULL_SPREAD = 2.0  # standard deviations within which two differences agree


@dataclass(frozen=True)
class StudyTable:
    """The columns of a study's table, and how a row is trained.

    Attributes:
        file: The role of the table.
        call: How a row is trained; texts such as `{depth}` stand for the row's values.
        claimed: The column of the result of a row, 0 to 1.
        seed: The column of the seed.
        size: The column of the model's size: a larger one should be better; empty: there is none.
        columns: The columns of the values that define a row, as the call names them.
        rows: How many rows are trained again, besides the base.
    """

    file: str
    call: TrainingCall
    claimed: str
    seed: str
    size: str = ""
    columns: tuple[str, ...] = ()
    rows: int = 2


@dataclass(frozen=True)
class StudyRow:
    """A row of a student's table.

    Attributes:
        values: Column -> value, as written there.
        claimed: The result by the student's table, 0 to 1.
        measured: The mean of its results when it was trained again, 0 to 1; None: it was not, or did not end.
        is_base: Whether it is the row from which the others differ.
        why_not: Why it could not be measured, as a sentence.
        seconds: Of training it again.
        seeds: The number of seeds with which it was trained again.
    """

    values: dict[str, str]
    claimed: float
    measured: float | None = None
    is_base: bool = False
    why_not: str = ""
    seconds: float = 0.0
    seeds: int = 1


@dataclass(frozen=True)
class StudyAgain:
    """The results of a study's rows that were trained again.

    Attributes:
        rows: The base first.
        tolerance: How far a difference from the base may be from the claimed one, by chance.
        reason: Why nothing was trained again, as a sentence.
        unexpected: The row of the table that contradicts most what its size suggests.
    """

    rows: tuple[StudyRow, ...] = ()
    tolerance: float = 0.0
    reason: str = ""
    unexpected: StudyRow | None = None

    @property
    def base(self) -> dict[str, str]:
        """The values of the base; none if nothing was trained again."""
        return self.rows[0].values if self.rows else {}

    @property
    def differences(self) -> tuple[tuple[StudyRow, float, float], ...]:
        """(row, claimed difference from the base, measured one) of each row that could be compared."""
        if not self.rows or self.rows[0].measured is None:
            return ()
        base = self.rows[0]
        return tuple(
            (row, row.claimed - base.claimed, row.measured - base.measured)
            for row in self.rows[1:]
            if row.measured is not None and base.measured is not None
        )

    @property
    def agrees(self) -> bool | None:
        """Whether each row differs from the base as claimed; None if that is not known."""
        differences = self.differences
        if self.reason or not differences or len(differences) < len(self.rows) - 1:
            return None
        return all(abs(claimed - measured) <= self.tolerance for _, claimed, measured in differences)


def with_values(value: Any, row: Mapping[str, Any]) -> Any:
    """Nested values, in which the row's values replace their placeholders."""
    if isinstance(value, Mapping):
        return {name: with_values(nested, row) for name, nested in value.items()}
    if isinstance(value, list):
        return [with_values(nested, row) for nested in value]
    return row.get(placeholder_in(value), value)
