"""A student's loop over epochs whose measurements are scripted by epoch, whatever else it measures.

A script answers by the number of a call alone. A loop may also measure the training images, or the model
before it is trained: then it is run again with a script for the order of its own calls. What the measured
values should lead to is the assignment's to check.

Tests: tests/kit/test_epochs_in_turn.py
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

MOST_RUNS = 5  # of a loop whose order of calls is another one each time
VALIDATION = "validation"

Row = Any  # what a call of `measures` gives


def measured_by_epochs(
    run: Callable[[Sequence[Row]], Any],
    whose: Callable[[Any], Collection[str] | None],
    *,
    trains: str,
    measures: str,
    rows: Sequence[Row],
    training: Sequence[Row],
    before: Row,
    epochs: int,
) -> Any:
    """The outcome of a loop whose validation images give one row after each epoch.

    Args:
        run: Runs the loop, with `measures` answering these rows, and gives its outcome.
        whose: Of a call of `measures`: the loaders of its images; nothing where they cannot be told.
        trains: The fake that trains for an epoch.
        measures: The fake that measures.
        rows: What the validation images give after each epoch; later ones give the last row.
        training: The same of the training images.
        before: What either give before the first epoch.
        epochs: How many there may be.

    Returns:
        The outcome; None if the order of the calls is another one each time.
    """
    answers = list(rows)
    for _ in range(MOST_RUNS):
        outcome = run(answers)
        trained, seen = 0, {0: list[Any]()}
        for call in outcome.calls:
            if call.fake == trains:
                trained += 1
                seen[trained] = []
            elif call.fake == measures:
                seen[trained].append(call)
        if [len(calls) for calls in seen.values()] == [0] + [1] * trained:
            return outcome  # once after each epoch: its images are asked for elsewhere
        of_validation = {
            epoch: [VALIDATION in (whose(call) or (VALIDATION,)) for call in calls]
            for epoch, calls in seen.items()
        }
        if not trained or sum(of_validation[0]) > 1:
            return outcome  # it trains in its own way: nobody knows after which epoch it measures
        usual = of_validation[max(trained - 1, 0)]  # the last epoch may be followed by what ends the loop
        written = [
            _row(rows if is_of_validation else training, epoch, before)
            for epoch in range(epochs + 1)
            for is_of_validation in of_validation.get(epoch, usual)
        ]
        count = sum(map(len, of_validation.values()))
        given = [answers[min(number, len(answers) - 1)] for number in range(count)]
        if given == written[:count]:
            return outcome
        answers = written
    return None


def _row(rows: Sequence[Row], epoch: int, before: Row) -> Row:
    """What is measured after an epoch: its row, or the last one."""
    return rows[min(epoch, len(rows)) - 1] if epoch else before
