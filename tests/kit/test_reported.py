"""Reports of numbers: how they are read, by which places, and how likely a guess is to be believed."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from grader.kit.reported import (
    HITS,
    LOSS_SPREAD,
    LOSSES,
    SIZES,
    Number,
    Quantity,
    beside,
    counts,
    evaluation_data,
    losses,
    places,
    said,
    shares,
)

NAMES = ("a", "b", "c", "d", "e", "f")
N = sum(SIZES)


@dataclass(frozen=True)
class Told:
    """A report."""

    printed: str = ""
    returned: tuple[float, ...] = ()
    history: tuple[float, ...] = ()


def read(text: str) -> list[Number]:
    """The different numbers in a text."""
    return [place.numbers[0] for place in places([Told(text)])]


@pytest.mark.parametrize(
    ("text", "value", "precision", "whole", "percent"),
    [
        ("acc 0.605", 0.605, 0.00051, False, False),
        ("60.5%", 60.5, 0.051, False, True),
        ("60 %", 60.0, 0.51, True, True),
        ("60", 60.0, 0.0, True, False),
        ("acc-0.605", 0.605, 0.00051, False, False),
        ("x = -0.605", -0.605, 0.00051, False, False),
        ("6.05e-01", 0.605, 0.00051, False, False),
        ("1e2", 100.0, 51.0, False, False),
        ("2.", 2.0, 0.0, True, False),
    ],
)
def test_a_number_is_as_precise_as_it_is_written(
    text: str, value: float, precision: float, whole: bool, percent: bool
) -> None:
    [found] = read(text)
    assert (found.value, found.whole, found.percent) == (pytest.approx(value), whole, percent)
    assert found.precision == pytest.approx(precision)


def test_fractions_and_ranges_are_two_numbers() -> None:
    assert {found.value for found in read("18/43 and 17-44")} == {18, 43, 17, 44}


def test_a_returned_number_with_few_decimals_was_rounded() -> None:
    [rounded, exact, whole] = [
        p.numbers[0] for p in reversed(places([Told(returned=(0.61, 0.6123456789, 3.0))]))
    ]
    assert rounded.precision == pytest.approx(0.0051)
    assert exact.precision < 1e-9
    assert whole.whole and whole.precision == 0


def believed(told: list[Told], quantity: Quantity) -> bool:
    """Whether the reports say the quantity."""
    return bool(said(places(told), [quantity]))


LOSS = Quantity("loss", (1.234, 2.345), 1.0, (0.2, 8.0))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("loss 1.234", "loss 2.345", True),
        ("loss 1.23 n 7", "loss 2.35 n 7", True),
        # however much comes before, behind or between
        ("1 2 loss 1.234", "1 2 3 4 loss 2.345", True),
        ("loss 1.234 and 5", "loss 2.345 and 5 6 7", True),
        ("took 3 s\nloss 1.234\n1 2", "loss 2.345 in 4\n1 2 3", True),
        # each right, but neither in the place of the other
        ("1.234 2.345", "1.234 2.345", False),
        ("a 1.234 b 5.5", "a 7.7 b 2.345", False),
        ("loss 1.234", "", False),
        ("1.234 %", "2.345 %", False),
    ],
)
def test_a_quantity_is_said_in_the_same_place(first: str, second: str, expected: bool) -> None:
    assert believed([Told(first), Told(second)], LOSS) == expected


def test_numbers_are_looked_at_until_one_would_be_right_by_chance() -> None:
    """The last ones first: what stands before too many rough ones is not believed."""
    right = [Told("loss 1.2 "), Told("loss 2.3 ")]
    behind = [Told(each.printed + text) for each, text in zip(right, ("1.9 1.8", "2.9 2.8"), strict=True)]
    assert said(places(right), [LOSS], most_chance=0.02)
    assert not said(places(right), [LOSS], most_chance=0.01)
    assert not said(places(behind), [LOSS], most_chance=0.02)


def test_what_a_loop_prints_on_its_way_is_no_answer() -> None:
    """Unless the right one stands among it."""
    wrong = [Quantity("first", (0.5, 0.6)), Quantity("last", (0.7, 0.8))]
    lines = ("at 0.5\nat 0.7\nat 1.234", "at 0.6\nat 0.8\nat 2.345")
    for order, expected in ((1, set()), (-1, {"first", "last"})):
        told = [Told("\n".join(text.split("\n")[::order])) for text in lines]
        found = places(told)
        assert beside(found, said(found, [LOSS])["loss"], wrong) == expected


# --- chance -------------------------------------------------------------------------------------------------


def right_ones(sets: tuple[Any, ...]) -> tuple[list[Quantity], list[Quantity]]:
    """The losses and the accuracies that are right."""
    hits = [data.predictions == data.labels for data in sets]
    accuracies = shares("accuracy", [each.mean() for each in hits], (HITS[0] / N, HITS[1] / N))
    accuracies.append(counts("accuracy", [int(each.sum()) for each in hits], HITS))
    means = [tuple(losses(d.table, d.labels, share).mean() for d in sets) for share in (0.0, 0.1, 0.2)]
    return [Quantity("loss", values, LOSS_SPREAD, LOSSES) for values in means], accuracies


def shuffled(values: list[str], dice: random.Random) -> str:
    return " ".join(dice.sample(values, len(values)))


GUESSES = {
    "whole numbers": lambda dice: shuffled([str(k) for k in range(*HITS)], dice),
    "percents": lambda dice: shuffled([f"{k}%" for k in range(25, 96)], dice),
    "two decimals": lambda dice: " ".join(f"{dice.uniform(0.25, 2.5):.2f}" for _ in range(150)),
    "one decimal": lambda dice: " ".join(f"{dice.uniform(0.25, 2.5):.1f}" for _ in range(60)),
    "rough": lambda dice: shuffled(["6e1", "5e1", "7e1", "6e-1", "5e-1", "1e0", "2e0", "1.5"] * 4, dice),
    "the likeliest": lambda dice: (
        f"{dice.gauss(1.5, 0.2):.2f} {dice.gauss(0.6, 0.1):.2f} {dice.randint(60, 90)}"
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guess", GUESSES)
def test_guesses_are_right_in_fewer_than_one_of_a_hundred_cases(guess: str) -> None:
    dice, lucky = random.Random(guess), 0
    for seed in range(100):
        losses_, accuracies = right_ones(evaluation_data(NAMES, seed))
        found = places([Told(GUESSES[guess](dice)) for _ in range(4)])
        lucky += bool(said(found, losses_)) + bool(said(found, accuracies))
    assert lucky == 0


@pytest.mark.slow
def test_answers_are_spread_as_widely_as_is_said() -> None:
    """No count and no loss is much likelier than others, so that the chance of a guess is as computed."""
    sets = [data for seed in range(400) for data in evaluation_data(NAMES, seed)]
    hits = np.array([(data.predictions == data.labels).sum() for data in sets])
    assert HITS[0] <= hits.min() and hits.max() <= HITS[1]
    assert np.histogram(hits, bins=9, range=(HITS[0], HITS[1] + 1))[0].max() < 1.3 / 9 * len(hits)
    for share in (0.0, 0.2):
        means = np.array([losses(data.table, data.labels, share).mean() for data in sets])
        assert means.min() > LOSSES[0] and means.max() < LOSSES[1]
        width = 0.2
        nearest = [np.abs(means - middle).__le__(width / 2).mean() for middle in np.arange(0.3, 5, 0.05)]
        assert max(nearest) < width / LOSS_SPREAD


def test_answers_differ_by_more_than_a_decimal() -> None:
    for seed in range(50):
        sets = evaluation_data(NAMES, seed)
        assert np.ptp([(data.predictions == data.labels).mean() for data in sets]) > 0.15
        assert np.ptp([losses(data.table, data.labels).mean() for data in sets]) > 0.4
