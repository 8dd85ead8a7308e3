"""The plots of a training and of a study, and the study's table."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes

from grader.domain.assignment import RubricItem
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.measure import Scale
from grader.reports.measured_words import MeasuredWords
from grader.reports.plots.training_plots import study_table, write_study_plot, write_training_plots

ACCURACY = MeasuredWords()
BITS = MeasuredWords(
    what="bits per character", is_accuracy=False, scale=Scale(lower_is_better=True, is_share=False)
)
EPOCHS = (Epoch(1, 1.5, 1.4, 0.4, 0.1, 2.0), Epoch(2, 1.2, 1.1, 0.6, 0.1, 2.0))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What is written into plots, and the points with their reach."""
    seen: dict[str, list[Any]] = {"texts": [], "labels": [], "points": []}
    annotate, errorbar, plot = Axes.annotate, Axes.errorbar, Axes.plot

    def annotated(self: Axes, text: str, *args: Any, **kwargs: Any) -> Any:
        seen["texts"].append(text)
        return annotate(self, text, *args, **kwargs)

    def point(self: Axes, x: Any, y: Any, yerr: Any, **kwargs: Any) -> Any:
        seen["points"].append((y, *(reach[0] for reach in yerr)))
        seen["axes"] = [self]
        return errorbar(self, x, y, yerr=yerr, **kwargs)

    def plotted(self: Axes, *args: Any, **kwargs: Any) -> Any:
        seen["labels"].append(kwargs.get("label"))
        return plot(self, *args, **kwargs)

    monkeypatch.setattr(Axes, "annotate", annotated)
    monkeypatch.setattr(Axes, "errorbar", point)
    monkeypatch.setattr(Axes, "plot", plotted)
    return seen


def test_each_training_without_a_number_says_how_it_ended(
    tmp_path: Path, drawn: dict[str, list[Any]]
) -> None:
    """A training that our limit stopped, or that a person must look at, has not failed."""
    outcomes = [outcome for outcome in TrainingOutcome if outcome is not TrainingOutcome.COMPLETED]
    rows = [("lr", f"0.{number}", False, Training(outcome)) for number, outcome in enumerate(outcomes)]
    rows.append(("lr", "0.7", False, Training(TrainingOutcome.DIVERGED, accuracy=0.1, interval=(0.05, 0.2))))
    rows.append(("lr", "0.8", True, Training(TrainingOutcome.COMPLETED, accuracy=0.8)))
    write_study_plot(rows, tmp_path / "study.png", ACCURACY)
    assert drawn["texts"] == ["failed", "diverged", "budget", "not run", "unknown", "diverged"]
    assert drawn["points"] == [(80.0, 0.0, 0.0)]
    diverged = list(csv.DictReader(io.StringIO(study_table(rows, ACCURACY))))[-2]
    assert (diverged["accuracy"], diverged["low"], diverged["outcome"]) == ("", "", "diverged")


def test_a_measure_of_the_assignments_own_is_what_a_study_compares(
    tmp_path: Path, drawn: dict[str, list[Any]]
) -> None:
    """The accuracy beside it has another unit, and the interval is not its own."""
    done = Training(TrainingOutcome.COMPLETED, accuracy=0.8, value=1.8, interval=(1.7, 1.875))
    unmeasured = Training(TrainingOutcome.COMPLETED, accuracy=0.7)
    rows = [("lr", "0.5", True, done), ("lr", "0.6", False, unmeasured)]
    write_study_plot(rows, tmp_path / "study.png", BITS)
    assert drawn["points"] == [pytest.approx((1.8, 0.1, 0.075))]
    assert drawn["axes"][0].get_ylabel() == "bits per character"
    first, second = csv.DictReader(io.StringIO(study_table(rows, BITS)))
    assert (first["bits per character"], first["low"], first["high"]) == ("1.8", "1.7", "1.875")
    assert second["bits per character"] == "" and "accuracy" not in first


def test_the_curves_name_no_function_that_the_student_may_not_have(
    tmp_path: Path, drawn: dict[str, list[Any]]
) -> None:
    write_training_plots(Training(TrainingOutcome.COMPLETED, epochs=EPOCHS), tmp_path)
    assert drawn["labels"] == [None, "your code, as it trains", "test images"]


@pytest.mark.parametrize(("is_accuracy", "asked_for"), [(True, ["asked for: 60 %"]), (False, [])])
def test_only_an_accuracy_is_asked_for_in_the_curve_of_accuracies(
    tmp_path: Path, drawn: dict[str, list[Any]], is_accuracy: bool, asked_for: list[str]
) -> None:
    """Also where a training was stopped, so that the other number is not known."""
    from grader.students.homework_training import write_results
    from grader.students.own_training import LocalTraining

    training = Training(TrainingOutcome.BUDGET, epochs=EPOCHS)
    item = RubricItem("measured", "Measured", 15, measured="it", threshold=0.6)
    program: Any = None
    write_results(LocalTraining(program, training, item, None, is_accuracy=is_accuracy), tmp_path)
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in drawn["texts"]] == asked_for
