"""The numbers that a student's function reports on several data sets, and which are believed.

A function that does not compute an answer can still list possible answers. So it is run on several data sets,
and a number counts by its place in the report: the first that is returned, the last that is printed, the one
after the word `accuracy`. It is right only if the same place is right for every data set. The data sets and
the runs of a function that measures a model are also made here. It contains no checks.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from grader.kit.compared_results import Mismatch
from grader.kit.rigged_data import SHAPE, RiggedData, Shape, scored_data

# at most, that anything is right by chance; half of what is promised, because data sets are not drawn quite
# independently: their answers must differ
MOST_CHANCE = 0.005
SAME = 1e-4  # relative: numbers that differ by less are the same
FIRST, LAST = 200, 1000  # numbers of one text or list that are examined
ROUNDED = 0.51  # of the unit of the last digit

_NUMBER = re.compile(r"((?<![\w.])-)?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3})(?![\w.]))?( ?%)?")

Unit = Literal["plain", "share", "percent", "count"]
Spot = tuple[str | int, ...]


class Report(Protocol):
    """What a run of a function reported."""

    @property
    def printed(self) -> str:
        """What it printed, and texts that it returned."""

    @property
    def returned(self) -> tuple[float, ...]:
        """The numbers that it returned."""

    @property
    def history(self) -> tuple[float, ...]:
        """The numbers that it appended."""


@dataclass(frozen=True)
class Number:
    """A number of a report.

    Attributes:
        precision: How far the true value may be from it: half a unit of its last decimal.
        whole: It has no decimals.
        percent: A percent sign follows.
    """

    value: float
    precision: float = 0.0
    whole: bool = False
    percent: bool = False


@dataclass(frozen=True)
class Place:
    """The numbers in one place of the reports about several data sets.

    Attributes:
        source: `returned`, `history` or `printed`.
        numbers: One for each data set.
        line: The letters of the line that it is printed in.
        is_progress: The same line is printed again later with other numbers; or, in a list, more numbers
            follow.
    """

    source: str
    numbers: tuple[Number, ...]
    line: str = ""
    is_progress: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether it has the same number for every data set."""
        return len({number.value for number in self.numbers}) == 1


@dataclass(frozen=True)
class Quantity:
    """Something that a report may state about each data set.

    Attributes:
        id: Its name.
        values: One for each data set.
        spread: A guess is within p of the value with a probability of at most 2 p / spread. It is the width
            of the values' distribution, if that is uniform.
        bounds: All values lie within these; a number outside cannot be a guess.
        unit: `count`: a whole number, exactly. `percent`: a whole number may be rounded. `plain`: never with
            a percent sign.
    """

    id: str
    values: tuple[float, ...]
    spread: float = math.inf
    bounds: tuple[float, float] = (-math.inf, math.inf)
    unit: Unit = "plain"

    def says(self, numbers: Sequence[Number]) -> bool:
        """Whether numbers, one for each data set, are its values, each within its precision."""
        return len(numbers) == len(self.values) and all(
            abs(number.value - value) <= self._near(number, value)
            for number, value in zip(numbers, self.values, strict=True)
        )

    def chance(self, numbers: Sequence[Number]) -> float:
        """The largest probability with which guessed numbers are its values."""
        low, high = self.bounds
        chance = 1.0
        for number in numbers:
            near = self._near(number, number.value)
            if near < 0 or not low - near <= number.value <= high + near:
                return 0.0
            width = 1.0 if self.unit == "count" else 2 * near
            chance *= min(1.0, width / self.spread)
        return chance

    def _near(self, number: Number, value: float) -> float:
        """How far a number that states the value may be from it; negative if it cannot state it."""
        if self.unit == "count":
            return 1e-6 if number.whole and not number.percent else -1.0
        if self.unit == "plain" and number.percent:
            return -1.0
        rounded = ROUNDED if self.unit == "percent" and number.whole else 0.0
        return max(number.precision, rounded, SAME * abs(value))


def shares(id_: str, values: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)) -> list[Quantity]:
    """A share, plain and in percent, that is drawn uniformly from within the bounds.

    Args:
        values: One for each data set.
    """
    (low, high), percents = bounds, tuple(100 * value for value in values)
    return [
        Quantity(id_, tuple(values), high - low, bounds, "share"),
        Quantity(id_, percents, 100 * (high - low), (100 * low, 100 * high), "percent"),
    ]


def counts(id_: str, values: Sequence[int], bounds: tuple[int, int]) -> Quantity:
    """A count that is drawn uniformly from within the bounds."""
    return Quantity(id_, tuple(map(float, values)), bounds[1] - bounds[0] + 1, bounds, "count")


def said(
    places: Iterable[Place], quantities: Sequence[Quantity], *, most_chance: float = MOST_CHANCE
) -> dict[str, list[Place]]:
    """Which quantities the places state: id -> places.

    Places come in order of their weight. A place is left out if it would raise the chance that anything is
    right by luck above `most_chance`, or if it has the same number for every data set.
    """
    by_quantity: dict[str, list[Place]] = {}
    risk = 0.0
    for place in places:
        if place.is_constant:
            continue
        chance = sum(quantity.chance(place.numbers) for quantity in quantities)
        if risk + chance > most_chance:
            continue
        risk += chance
        for quantity in quantities:
            if quantity.says(place.numbers):
                by_quantity.setdefault(quantity.id, []).append(place)
    return by_quantity


def beside(places: Iterable[Place], right: Sequence[Place], wrong: Sequence[Quantity]) -> set[str]:
    """Which wrong quantities are reported beside right ones, as if they were answers too.

    What a loop prints repeatedly in the same words is not an answer, except the last time; unless the right
    one is among it.
    """
    lines = {place.line for place in right if place.is_progress}
    answers = [place for place in places if not place.is_progress or place.line in lines]
    return set(said(answers, wrong, most_chance=math.inf))


def places(reports: Sequence[Report]) -> list[Place]:
    """The places of several reports by the same function: what was returned, appended, then printed last."""
    by_numbers: dict[tuple[Number, ...], Place] = {}
    for source in ("returned", "history"):
        lists = [_given_numbers(getattr(report, source)) for report in reports]
        for numbers, entries in _common_spots([_ends(entries) for entries in lists]):
            is_progress = source == "history" and entries[0] != len(lists[0]) - 1
            numbers = _rounded_alike(numbers)
            by_numbers.setdefault(numbers, Place(source, numbers, "", is_progress))
    texts = [_read(report.printed) for report in reports]
    spots = [{**_ends(text.numbers), **text.by_word} for text in texts]
    for numbers, entries in _common_spots(spots):
        lines = [text.lines[entry] for text, entry in zip(texts, entries, strict=True)]
        is_progress = all(is_progress for _, is_progress in lines)
        by_numbers.setdefault(numbers, Place("printed", numbers, lines[0][0], is_progress))
    return list(by_numbers.values())


# --- reading ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """The numbers of a text.

    Attributes:
        numbers: In order.
        lines: For each the letters of its line, and whether that line comes again.
        by_word: (The letters before it, how many numbers lie between, how often that comes again) -> (its
            index, the number).
    """

    numbers: list[Number]
    lines: list[tuple[str, bool]]
    by_word: dict[Spot, tuple[int, Number]]


def _read(text: str) -> _Text:
    lines = [(line, _letters(line)) for line in re.split(r"[\r\n]+", text)]
    final = {letters: number for number, (_, letters) in enumerate(lines)}  # the last line with these letters
    parsed, words = _Text([], [], {}), list[tuple[str, int]]()
    for place, (line, letters) in enumerate(lines):
        word, behind, end = "", 0, 0
        for match in _NUMBER.finditer(line):
            between = _letters(line[end : match.start()])
            word, behind, end = between or word, 0 if between else behind + 1, match.end()
            if (number := _number(*match.groups())) is not None:
                words.append((word, behind))
                parsed.numbers.append(number)
                parsed.lines.append((letters, bool(letters) and place < final[letters]))
    # counted from the end: a loop may run longer for one data set than for another
    later = Counter[tuple[str, int]]()
    for index in reversed(range(len(words))):
        parsed.by_word["word", *words[index], later[words[index]]] = index, parsed.numbers[index]
        later[words[index]] += 1
    return parsed


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.casefold()))


def _number(
    sign: str | None, digits: str, decimals: str | None, power: str | None, percent: str | None
) -> Number | None:
    """The number of a match; None if it is too large."""
    exponent = int(power or 0)
    value = float(f"{sign or ''}{digits}.{decimals or 0}e{exponent}")
    if not math.isfinite(value):
        return None
    is_whole = not decimals and not power
    precision = 0.0 if is_whole and not percent else ROUNDED * 10.0 ** (exponent - len(decimals or ""))
    return Number(value, precision, is_whole, bool(percent))


def _given_numbers(values: Iterable[float]) -> list[Number]:
    """Numbers that were given as numbers; one with few decimals was rounded."""
    numbers_held = []
    for value in map(float, values):
        match = None if value.is_integer() else _NUMBER.fullmatch(repr(value))
        number = _number(*match.groups()) if match else None
        numbers_held.append(number or Number(value, whole=value.is_integer()))
    return numbers_held


def _rounded_alike(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    """Numbers that were rounded alike, even if one of them lost a zero at its end."""
    finest = min((number.precision for number in numbers if not number.whole), default=0.0)
    return tuple(replace(number, precision=finest) for number in numbers)


def _ends(numbers: Sequence[Number]) -> dict[Spot, tuple[int, Number]]:
    """Numbers by their places from the end, the last first, and from the start: -> (index, number)."""
    count = len(numbers)
    spots: dict[Spot, tuple[int, Number]] = {}
    for back in range(min(count, LAST)):
        spots["end", back] = count - 1 - back, numbers[count - 1 - back]
    for index in range(min(count, FIRST)):
        spots["start", index] = index, numbers[index]
    return spots


def _common_spots(
    spots: Sequence[dict[Spot, tuple[int, Number]]],
) -> Iterator[tuple[tuple[Number, ...], tuple[int, ...]]]:
    """The numbers and their indices, for the spots that all reports have."""
    for spot in spots[0] if spots else ():
        if all(spot in others for others in spots):
            entries = [report[spot] for report in spots]
            yield tuple(number for _, number in entries), tuple(index for index, _ in entries)


# --- evaluations -----------------------------------------------------------------------------------------


SETS = 4  # a guess is right for all of them in at most one of a hundred cases
SIZES = (40, 40, 40, 7)  # the mean of the batches' means differs from that over all images
HITS = (32, 121)  # of the 127 images; all numbers are equally likely
SCALES = (0.3, 3.5)  # of the logits
LOSSES = (0.2, 8.0)  # between which the average losses lie
# a guess that is p away from an average loss, with label smoothing of up to 0.2, counts as right with a
# probability of at most 2 p / LOSS_SPREAD
LOSS_SPREAD = 1.0
# between the largest and the smallest answer: they differ even when rounded to one decimal
SHARES_APART, LOSSES_APART = 0.2, 0.5

Array = Any
Evaluations = tuple[tuple[RiggedData, Any], ...]


def evaluations(
    student: Any, function: str, class_names: tuple[str, ...], *, shape: Shape = SHAPE
) -> Evaluations:
    """Data sets and a function's runs on them, in one worker; the first model comes in evaluation mode.

    Only the model's answers distinguish the runs. They are made once for all checks.

    Args:
        function: The graded function that evaluates a model on a loader.
        class_names: Of the data sets.
        shape: Channels, height and width of the images.

    Raises:
        Mismatch: The function raised, or does not exist.
    """

    def make() -> Evaluations | Mismatch:
        try:
            return tuple(
                (data, student.run(function, data, initial_mode="train" if number else "eval"))
                for number, data in enumerate(evaluation_data(class_names, student.next_seed(), shape))
            )
        except Mismatch as error:
            return error

    outcome: Evaluations | Mismatch = student.shared(function, make)
    if isinstance(outcome, Mismatch):
        raise outcome.again()
    return outcome


def evaluation_data(class_names: tuple[str, ...], seed: int, shape: Shape = SHAPE) -> tuple[RiggedData, ...]:
    """SETS data sets whose right counts and losses are not all similar."""
    random = np.random.default_rng(seed)
    low, high = map(math.log, SCALES)
    while True:
        data = tuple(
            scored_data(
                class_names,
                SIZES,
                hits=int(random.integers(HITS[0], HITS[1] + 1)),
                scale=math.exp(random.uniform(low, high)),
                seed=int(random.integers(2**31)),
                shape=shape,
            )
            for _ in range(SETS)
        )
        shares = [float((data_set.predictions == data_set.labels).mean()) for data_set in data]
        averages = [float(losses(data_set.table, data_set.labels).mean()) for data_set in data]
        if np.ptp(shares) >= SHARES_APART and np.ptp(averages) >= LOSSES_APART:
            return data


def losses(table: Array, labels: Array, smoothing: float = 0.0) -> Array:
    """The cross-entropy of each image, (n,).

    Label smoothing distributes a share of every label evenly over all classes. Source: Szegedy et al. (2016),
    section 7.

    Args:
        table: Logits, (n, classes).
        labels: int (n,).
    """
    table = table.astype(np.float64)
    table = table - table.max(axis=1, keepdims=True)
    log_p = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    hit = -log_p[np.arange(len(table)), labels]
    return (1 - smoothing) * hit - smoothing * log_p.mean(axis=1)
