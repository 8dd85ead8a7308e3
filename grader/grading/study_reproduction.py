"""Some rows of a study that was handed in, trained again: do they differ from the base as claimed?

One training of each tells little where trainings scatter. So where a row disagrees, all are trained with
further seeds: their means scatter less, and they show how much the student's training does. As this is
known of a few trainings alone, Student's t takes the place of two standard deviations then.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import keyed_number
from grader.domain.measure import (
    FULL_SPREAD,
    Measure,
    StudyAgain,
    StudyRow,
    StudyTable,
    placeholder_in,
    with_values,
)
from grader.kit import Mismatch, csv_rows
from grader.protocol.trees import OtherValues

MOST_BYTES = 200_000
MOST_ROWS = 500
# between seeds, as a standard deviation: the table may show less, or more than anybody can compare by
LEAST_NOISE, MOST_NOISE = 0.01, 0.03
FURTHER_SEEDS = 2  # that all rows are trained with where one disagrees
ALL_CHANCE = 0.05  # that any of the rows is beyond what is taken for chance, though its claim is true
MOST_SHOWN = 0.06  # of what our own trainings scatter by
Trained = Callable[[Mapping[str, Any], int], tuple[float | None, str, float]]
"""The values of a row, the number of its training, from 1 -> its accuracy (0 to 1), why none, seconds."""


@dataclass(frozen=True)
class _Read:
    """A row as it was read: its values by their columns, its seed, its claim and its size."""

    values: tuple[str, ...]
    seed: str
    claimed: float
    size: float | None


def study_again(
    table: StudyTable, content: bytes, *, secret: str, images: int, trained: Trained
) -> StudyAgain:
    """Train the base and some of the rows again.

    Args:
        content: The table.
        secret: Decides which rows; nobody can tell beforehand.
        images: How many the accuracy is measured on.
        trained: Trains a row.
    """
    try:
        rows = _read(table, content)
    except Mismatch as mismatch:
        return StudyAgain(reason=f"The study's table cannot be read: {mismatch}")
    base = _base(rows)
    own = [row for row in rows if row.values == base]
    others = {row.values: row for row in rows if len(_differing(row.values, base)) == 1}
    if not others:
        return StudyAgain(reason="No row of the study differs from another in one value.")
    chosen = _chosen(table, base, list(others.values()), secret)
    claimed = statistics.mean(row.claimed for row in own)
    shown = [_shown(table, replace(own[0], claimed=claimed), is_base=True)]
    shown += [_shown(table, row) for row in chosen]
    trainings = _Trainings(shown, trained)
    claims = [row.claimed for row in own]
    unexpected = _unexpected(table, list(others.values()), claimed, own[0].size)
    complete = trainings.add(1)
    once = StudyAgain(trainings.rows, _tolerance(claims, images), unexpected=unexpected)
    if not complete or once.agrees:
        return once
    trainings.add(FURTHER_SEEDS)
    return replace(once, rows=trainings.rows, tolerance=_tolerance(claims, images, trainings.scatter))


class _Trainings:
    """What the trainings of the rows have reached so far."""

    def __init__(self, rows: Sequence[StudyRow], trained: Trained) -> None:
        self._rows = list(rows)
        self._trained = trained
        self._reached: list[list[float]] = [[] for _ in rows]

    def add(self, seeds: int) -> bool:
        """Train all rows with further seeds; whether each training ended."""
        return all(self._add(place) for _ in range(seeds) for place in range(len(self._rows)))

    def _add(self, place: int) -> bool:
        row, reached = self._rows[place], self._reached[place]
        values = {name: typed(text) for name, text in row.values.items()}
        measured, why_not, seconds = self._trained(values, len(reached) + 1)
        if measured is None:
            reached.clear()
        else:
            reached.append(measured)
        self._rows[place] = replace(row, why_not=why_not, seconds=row.seconds + seconds)
        return measured is not None

    @property
    def rows(self) -> tuple[StudyRow, ...]:
        """The rows, each with what it reached in the mean."""
        return tuple(
            replace(row, measured=statistics.mean(reached), seeds=len(reached)) if reached else row
            for row, reached in zip(self._rows, self._reached, strict=True)
        )

    @property
    def scatter(self) -> "_Scatter":
        """How much these trainings differ by their seeds, in all rows together."""
        several = [reached for reached in self._reached if len(reached) > 1]
        freedom = sum(len(reached) - 1 for reached in several)
        squares = sum(statistics.variance(reached) * (len(reached) - 1) for reached in several)
        return _Scatter(math.sqrt(squares / max(freedom, 1)), freedom, len(self._rows) - 1)


@dataclass(frozen=True)
class _Scatter:
    """What is known of it.

    Attributes:
        deviation: The standard deviation.
        freedom: Its degrees of freedom.
        rows: How many are compared with the base.
    """

    deviation: float
    freedom: int
    rows: int


def call_of(assignment: Assignment, table: StudyTable, values: Mapping[str, Any]) -> Measure:
    """The measure of a row: the first one, trained by the table's call with the row's values."""
    call = replace(
        table.call,
        arguments=with_values(table.call.arguments, values),
        given=with_values(table.call.given, values),
    )
    return replace(assignment.measures[0], call=call, function="")


def other_values(table: StudyTable, values: Mapping[str, Any]) -> OtherValues:
    """What the student's own script is given in the place of its values, so that it trains a row."""
    call = table.call
    given = with_values(call.given, values)
    plain = {name: value for name, value in given.items() if _is_plain(value) and not placeholder_in(value)}
    return OtherValues(dict(with_values(call.arguments, values)), call.function, plain)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def typed(text: str) -> int | float | str:
    """A value of the table: a whole number, a number, or a text."""
    for kind in (int, float):
        try:
            return kind(text.replace(",", "."))
        except ValueError:
            continue
    return text


def _read(table: StudyTable, content: bytes) -> list[_Read]:
    """The rows.

    Raises:
        Mismatch: There are none, or too many, or a column is missing.
    """
    if len(content) > MOST_BYTES:
        raise Mismatch(f"it is larger than {MOST_BYTES // 1000} kB.")
    columns: dict[str, type] = dict.fromkeys(table.columns, str)
    columns |= {table.seed: str, table.claimed: float}
    if table.size:
        columns[table.size] = float
    rows = csv_rows(content, columns, name="it")
    if len(rows) > MOST_ROWS:
        raise Mismatch(f"it has more than {MOST_ROWS} rows.")
    for row in rows:
        if not 0.0 <= row[table.claimed] <= 1.0:
            raise Mismatch(f"{row[table.claimed]:g} is not an accuracy from 0 to 1.")
    return [
        _Read(
            tuple(row[name].strip() for name in table.columns),
            row[table.seed],
            row[table.claimed],
            row[table.size] if table.size else None,
        )
        for row in rows
    ]


def _differing(one: Sequence[str], other: Sequence[str]) -> list[int]:
    return [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if typed(a) != typed(b)]


def _base(rows: Sequence[_Read]) -> tuple[str, ...]:
    """The configuration with most rows, and of these the one that most others differ from in one value."""
    counts = Counter(row.values for row in rows)

    def standing(values: tuple[str, ...]) -> tuple[int, int]:
        return counts[values], sum(len(_differing(row.values, values)) == 1 for row in rows)

    return max(counts, key=standing)


def _chosen(table: StudyTable, base: tuple[str, ...], rows: Sequence[_Read], secret: str) -> list[_Read]:
    """Rows in an order that only the secret tells, of different columns as far as there are."""
    order = sorted(rows, key=lambda row: keyed_number(secret, "study", *row.values))
    seen: set[int] = set()
    first: list[_Read] = []
    later: list[_Read] = []
    for row in order:
        place = _differing(row.values, base)[0]
        (later if place in seen else first).append(row)
        seen.add(place)
    return [*first, *later][: table.rows]


def _shown(table: StudyTable, row: _Read, *, is_base: bool = False) -> StudyRow:
    return StudyRow(dict(zip(table.columns, row.values, strict=True)), row.claimed, is_base=is_base)


def _tolerance(claims: Sequence[float], images: int, scatter: _Scatter | None = None) -> float:
    """How far two differences may be apart by chance: by seeds on both sides, and by our test images.

    Args:
        claims: What the rows of the base reached, each with its seed.
        scatter: Of our own trainings, where there are several of each row.
    """
    claimed = statistics.mean(claims)
    noise = min(max(statistics.stdev(claims) if len(claims) > 1 else 0.0, LEAST_NOISE), MOST_NOISE)
    spread, seeds = FULL_SPREAD, 1
    if scatter is not None and scatter.freedom:
        noise = max(noise, min(scatter.deviation, MOST_SHOWN))
        spread, seeds = _quantile(ALL_CHANCE / scatter.rows, scatter.freedom), 1 + FURTHER_SEEDS
    variance = noise**2 * (1 + 1 / len(claims)) + 2 * noise**2 / seeds
    return spread * math.sqrt(variance + 2 * claimed * (1 - claimed) / max(images, 1))


def _quantile(share: float, freedom: int) -> float:
    """What Student's t is beyond, on either side, with this probability.

    Source: Abramowitz and Stegun (1964), 26.7.5, the expansion by the normal distribution's quantile.
    """
    z = statistics.NormalDist().inv_cdf(1 - share / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _unexpected(
    table: StudyTable, rows: Sequence[_Read], claimed: float, size: float | None
) -> StudyRow | None:
    """The row that is most against what is expected: worse though larger, or better though smaller.

    Where there is none, it is one of the same size that made most of a difference, else any.
    """

    def against(row: _Read) -> float:
        if row.size is None or size is None or row.size == size:
            return 0.0
        return math.copysign(row.claimed - claimed, (size - row.size) * (row.claimed - claimed))

    def most(row: _Read) -> tuple[bool, float]:
        return against(row) > 0, against(row) if against(row) > 0 else abs(row.claimed - claimed)

    alike = [row for row in rows if against(row) >= 0]
    return _shown(table, max(alike or rows, key=most)) if rows else None
