"""A study that is handed in as a table of trainings, of which some rows are trained again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.domain.measure import TrainingCall, placeholder_in

FULL_SPREAD = 2.0  # standard deviations within which two differences agree


@dataclass(frozen=True)
class StudyTable:
    """What the rows of the table are, and how one of them is trained.

    Attributes:
        file: The role of the table.
        call: How a row is trained; texts such as `{depth}` stand for the row's values.
        claimed: The column of what a row reached, 0 to 1.
        seed: The column of the seed.
        size: The column of how large the model is: a larger one should be better; empty: there is none.
        columns: Of the values that make a row, as the call names them.
        rows: How many rows are trained again, beside the base.
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
        values: Column -> value, as it is written there.
        claimed: What the student says that it reached, 0 to 1.
        measured: What it reached when it was trained again, 0 to 1, in the mean; None: it was not, or did
            not end.
        is_base: It is the one that the others differ from.
        why_not: Why it has not been measured, though it should have been, as a sentence.
        seconds: Of training it again.
        seeds: With how many it was trained again.
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
    """What came of a study's rows that were trained again.

    Attributes:
        rows: The base first.
        tolerance: How far a difference from the base may be from the claimed one, by chance.
        reason: Why nothing was trained again, as a sentence.
        unexpected: A row of the table that went most against what its size lets one expect.
    """

    rows: tuple[StudyRow, ...] = ()
    tolerance: float = 0.0
    reason: str = ""
    unexpected: StudyRow | None = None

    @property
    def base(self) -> dict[str, str]:
        """The values of the base; none where nothing was trained again."""
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
        """Whether each row differs from the base as was claimed; None where that is not known."""
        found = self.differences
        if self.reason or not found or len(found) < len(self.rows) - 1:
            return None
        return all(abs(claimed - measured) <= self.tolerance for _, claimed, measured in found)


def with_values(value: Any, row: Mapping[str, Any]) -> Any:
    """Nested values in which the row's stand in the place of their names."""
    if isinstance(value, Mapping):
        return {name: with_values(each, row) for name, each in value.items()}
    if isinstance(value, list):
        return [with_values(each, row) for each in value]
    return row.get(placeholder_in(value), value)
