"""Trained models side by side."""

from dataclasses import replace

from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.program_run import Rehearsal
from grader.reports.measured_words import MeasuredWords
from grader.reports.student.model_figures import UNKNOWN, side_by_side

EPOCHS = tuple(Epoch(number, None, 1.0, 0.5, 0.001, 3.0) for number in (1, 2))
SMALL = Training(
    TrainingOutcome.COMPLETED,
    epochs=EPOCHS,
    accuracy=0.61,
    interval=(0.59, 0.63),
    seen_accuracy=0.733,
    seconds=61.7,
)
FAILED = Training(TrainingOutcome.FAILED)
SIZE = Rehearsal(parameters=460_906, multiply_adds=34_081_920)


def rows(*models: tuple[Training, Rehearsal | None]) -> dict[str, tuple[str, ...]]:
    """The table by its labels."""
    found = side_by_side([(training, rehearsal, MeasuredWords()) for training, rehearsal in models])
    return {row.label: tuple(cell.replace("\xa0", " ") for cell in row.cells) for row in found}


def test_what_is_known_of_each_model_is_beside_the_others() -> None:
    told = rows((SMALL, SIZE), (FAILED, None))
    assert told == {
        "Test accuracy": ("61.0 % (59.0 % to 63.0 %)", UNKNOWN),
        "Accuracy on training images": ("73.3 %", UNKNOWN),
        "Gap": ("12.3", UNKNOWN),
        "Parameters": ("460,906", UNKNOWN),
        "Multiply-adds per image": ("34.1 million", UNKNOWN),
        "Epochs": ("2", UNKNOWN),
        "Seconds per epoch": ("31", UNKNOWN),
    }


def test_what_is_known_of_none_is_left_out() -> None:
    assert rows((FAILED, None)) == {}
    assert "Gap" not in rows((replace(SMALL, seen_accuracy=None), SIZE))


def test_small_sizes_are_told_exactly() -> None:
    assert rows((SMALL, Rehearsal(multiply_adds=6_912)))["Multiply-adds per image"] == ("6,912",)
