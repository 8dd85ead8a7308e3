"""Measurements are answered by epoch and by whose images they are, in whatever order a loop asks for them."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from grader.kit import measured_by_epochs

ROWS = [(0.8, 0.3), (0.6, 0.5), (0.4, 0.7)]
TRAINING = [(0.7, 0.4), (0.5, 0.6), (0.3, 0.8)]
BEFORE = (3.0, 0.1)
Loop = Callable[[Callable[[], None], Callable[[str], Any]], None]


def after_each(train: Callable[[], None], measure: Callable[[str], Any]) -> None:
    for _ in ROWS:
        train()
        measure("validation")


def training_too(train: Callable[[], None], measure: Callable[[str], Any]) -> None:
    for _ in ROWS:
        train()
        measure("train")
        measure("validation")


def before_the_first(train: Callable[[], None], measure: Callable[[str], Any]) -> None:
    measure("validation")
    after_each(train, measure)


def in_its_own_way(train: Callable[[], None], measure: Callable[[str], Any]) -> None:
    for _ in ROWS:
        measure("validation")


def answered(loop: Loop) -> list[tuple[str, Any]] | None:
    """(whose images, answer) of each measurement in the run that counts."""
    found: list[tuple[str, Any]] = []

    def run(answers: Sequence[Any]) -> Any:
        found.clear()
        calls = []

        def train() -> None:
            calls.append(SimpleNamespace(fake="epoch", whose=""))

        def measure(whose: str) -> Any:
            calls.append(SimpleNamespace(fake="measure", whose=whose))
            answer = answers[min(len(found), len(answers) - 1)]
            found.append((whose, answer))
            return answer

        loop(train, measure)
        return SimpleNamespace(calls=calls)

    outcome = measured_by_epochs(
        run,
        lambda call: {call.whose},
        trains="epoch",
        measures="measure",
        rows=ROWS,
        training=TRAINING,
        before=BEFORE,
        epochs=3,
    )
    return found if outcome is not None else None


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        (after_each, [("validation", row) for row in ROWS]),
        (
            training_too,
            [
                pair
                for own, row in zip(TRAINING, ROWS, strict=True)
                for pair in (("train", own), ("validation", row))
            ],
        ),
        (before_the_first, [("validation", row) for row in (BEFORE, *ROWS)]),
        (in_its_own_way, [("validation", row) for row in ROWS]),
    ],
)
def test_each_measurement_is_answered_by_its_epoch_and_images(loop: Loop, expected: list[Any]) -> None:
    assert answered(loop) == expected


def test_a_loop_without_an_order_of_its_own_has_no_outcome() -> None:
    """A person looks at it."""
    runs = 0

    def otherwise_each_time(train: Callable[[], None], measure: Callable[[str], Any]) -> None:
        nonlocal runs
        runs += 1
        for _ in ROWS:
            train()
            for _ in range(runs % 2):
                measure("train")
            measure("validation")
            measure("train")

    assert answered(otherwise_each_time) is None
