"""Trains some rows of a study again: do they differ from the base as the student claims?

Where trainings scatter, one training of each row says little. So if a row disagrees, all are trained with
further seeds: their means scatter less, and they show how much the student's training does. As this
estimate rests on a few trainings, Student's t then replaces two standard deviations.
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
# the standard deviation between seeds; what the table shows of it is a claim like all others
LEAST_NOISE = 0.01
FURTHER_SEEDS = 2  # all rows are trained with these too if one disagrees
ALL_CHANCE = 0.05  # the probability that any row with a true claim is beyond what is taken for chance
MOST_TOLERANCE = 0.15  # where chance accounts for more, any claim would agree
Trained = Callable[[Mapping[str, Any], int], tuple[float | None, str, float]]
"""The values of a row, the number of its training from 1 -> its accuracy (0 to 1), why none, seconds."""


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
        secret: Decides which rows, so that nobody knows beforehand.
        images: The number of images that the accuracy is measured on.
        trained: Trains a row.
    """
    try:
        rows = _read(table, content)
    except Mismatch as mismatch:
        return StudyAgain(reason=f"The study's table cannot be read: {mismatch}")
    base = _base(rows)
    base_rows = [row for row in rows if row.values == base]
    others = {row.values: row for row in rows if len(_differing(row.values, base)) == 1}
    if not others:
        return StudyAgain(reason="No row of the study differs from another in a single value.")
    chosen = _chosen(table, base, list(others.values()), secret)
    claimed = statistics.mean(row.claimed for row in base_rows)
    shown = [_report_row(table, replace(base_rows[0], claimed=claimed), is_base=True)]
    shown += [_report_row(table, row) for row in chosen]
    trainings = _Trainings(shown, trained)
    claims = [row.claimed for row in base_rows]
    unexpected = _unexpected(table, list(others.values()), claimed, base_rows[0].size)
    complete = trainings.add(1)
    once = StudyAgain(trainings.rows, _tolerance(claims, images), unexpected=unexpected)
    if not complete:
        return once
    if len({row.measured for row in once.rows}) == 1:
        same = f"{100 * (once.rows[0].measured or 0.0):.1f}"
        return replace(
            once,
            reason=f"Trained again, each row reaches exactly what the base reaches, {same} %: it may be "
            "that their values make no difference to the model.",
        )
    if once.agrees:
        return once
    trainings.add(FURTHER_SEEDS)
    often = replace(once, rows=trainings.rows, tolerance=_tolerance(claims, images, trainings.scatter))
    if often.tolerance > MOST_TOLERANCE:
        scatter = f"{100 * often.tolerance:.1f}"
        return replace(
            often,
            reason=f"Trained again, the rows scatter so much that differences of up to {scatter} points "
            "would be chance: whether they are as claimed cannot be told.",
        )
    return often


class _Trainings:
    """The results that the trainings of the rows have reached so far."""

    def __init__(self, rows: Sequence[StudyRow], trained: Trained) -> None:
        self._rows = list(rows)
        self._trained = trained
        self._reached: list[list[float]] = [[] for _ in rows]

    def add(self, seeds: int) -> bool:
        """Train all rows with further seeds, and return whether every training ended."""
        return all(self._add(place) for _ in range(seeds) for place in range(len(self._rows)))

    def _add(self, index: int) -> bool:
        row, reached = self._rows[index], self._reached[index]
        values = {name: typed(text) for name, text in row.values.items()}
        measured, why_not, seconds = self._trained(values, len(reached) + 1)
        if measured is None:
            reached.clear()
        else:
            reached.append(measured)
        self._rows[index] = replace(row, why_not=why_not, seconds=row.seconds + seconds)
        return measured is not None

    @property
    def rows(self) -> tuple[StudyRow, ...]:
        """The rows, each with the mean of its results."""
        return tuple(
            replace(row, measured=statistics.mean(reached), seeds=len(reached)) if reached else row
            for row, reached in zip(self._rows, self._reached, strict=True)
        )

    @property
    def scatter(self) -> "_Scatter":
        """How much these trainings differ between seeds, pooled over all rows."""
        several = [reached for reached in self._reached if len(reached) > 1]
        freedom = sum(len(reached) - 1 for reached in several)
        squares = sum(statistics.variance(reached) * (len(reached) - 1) for reached in several)
        return _Scatter(math.sqrt(squares / max(freedom, 1)), freedom, len(self._rows) - 1)


@dataclass(frozen=True)
class _Scatter:
    """The scatter of trainings between seeds.

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
    """What the student's own script is given in place of its values, so that it trains a row."""
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


def _differing(values: Sequence[str], others: Sequence[str]) -> list[int]:
    return [column for column, (a, b) in enumerate(zip(values, others, strict=True)) if typed(a) != typed(b)]


def _base(rows: Sequence[_Read]) -> tuple[str, ...]:
    """The configuration with most rows; of several, the one from which most others differ in one value."""
    counts = Counter(row.values for row in rows)

    def frequency(configuration: tuple[str, ...]) -> tuple[int, int]:
        return counts[configuration], sum(len(_differing(row.values, configuration)) == 1 for row in rows)

    return max(counts, key=frequency)


def _chosen(table: StudyTable, base: tuple[str, ...], rows: Sequence[_Read], secret: str) -> list[_Read]:
    """Rows in an order that only the secret determines, of different columns as far as possible."""
    order = sorted(rows, key=lambda row: keyed_number(secret, "study", *row.values))
    columns_seen: set[int] = set()
    first_of_column: list[_Read] = []
    further: list[_Read] = []
    for row in order:
        column = _differing(row.values, base)[0]
        (further if column in columns_seen else first_of_column).append(row)
        columns_seen.add(column)
    return [*first_of_column, *further][: table.rows]


def _report_row(table: StudyTable, row: _Read, *, is_base: bool = False) -> StudyRow:
    return StudyRow(dict(zip(table.columns, row.values, strict=True)), row.claimed, is_base=is_base)


def _tolerance(claims: Sequence[float], images: int, scatter: _Scatter | None = None) -> float:
    """How far two differences may be apart by chance: from seeds on both sides and from our test images.

    Args:
        claims: The results of the base's rows, each with its seed.
        scatter: Of our own trainings, if there are several of each row.
    """
    claimed, noise = statistics.mean(claims), LEAST_NOISE
    spread, seeds = FULL_SPREAD, 1
    if scatter is not None and scatter.freedom:
        noise = max(noise, scatter.deviation)
        spread, seeds = _quantile(ALL_CHANCE / scatter.rows, scatter.freedom), 1 + FURTHER_SEEDS
    variance = noise**2 * (1 + 1 / len(claims)) + 2 * noise**2 / seeds
    return spread * math.sqrt(variance + 2 * claimed * (1 - claimed) / max(images, 1))


def _quantile(share: float, freedom: int) -> float:
    """The value that Student's t exceeds, on either side, with this probability.

    Source: Abramowitz and Stegun (1964), 26.7.5, the expansion by the normal distribution's quantile.
    """
    z = statistics.NormalDist().inv_cdf(1 - share / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _unexpected(
    table: StudyTable, rows: Sequence[_Read], claimed: float, size: float | None
) -> StudyRow | None:
    """The row that most contradicts expectations: worse though larger, or better though smaller.

    If there is none, it is one of the same size that made the largest difference, else any.
    """

    def against(candidate: _Read) -> float:
        if candidate.size is None or size is None or candidate.size == size:
            return 0.0
        return math.copysign(
            candidate.claimed - claimed, (size - candidate.size) * (candidate.claimed - claimed)
        )

    def most(candidate: _Read) -> tuple[bool, float]:
        return against(candidate) > 0, against(candidate) if against(candidate) > 0 else abs(
            candidate.claimed - claimed
        )

    alike = [row for row in rows if against(row) >= 0]
    return _report_row(table, max(alike or rows, key=most)) if rows else None
