"""How long a training will take is told from a trial and its first epochs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.domain.analyzed_program import Place
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.program_run import Rehearsal, Stage
from grader.students.homework_training import training_estimates

EPOCHS = 30
STAGE = Stage(Place("homework.py", 1), None, "AdamW", "", 100, EPOCHS, 0.1, 0.1)


@pytest.fixture
def found(course_root: Path, tmp_path: Path, solved: str) -> Any:
    """A homework in its folder."""
    from grader.students.homework import HomeworkRequest, homework

    path = tmp_path / "homework.py"
    path.write_text(solved, encoding="utf-8")
    return homework(HomeworkRequest(tmp_path, path, None, "vit_defects", course_root))


def trained(monkeypatch: pytest.MonkeyPatch, rehearsal: Rehearsal, seconds: list[float]) -> list[int]:
    """Let a trial come to this, and epochs take so long; the epochs that were begun."""
    begun: list[int] = []

    def measured_training(workers: Any, job: Any, report: Any) -> Any:
        for number, each in enumerate(seconds, start=1):
            begun.append(number)
            report(SimpleNamespace(epoch=Epoch(number, None, 1.0, 0.5, 0.1, each), planned=number))
        return SimpleNamespace(
            training=Training(TrainingOutcome.FAILED, "Training ended in epoch 1: it raised.")
        )

    monkeypatch.setattr("grader.training.rehearsed", lambda workers, job: rehearsal)
    monkeypatch.setattr("grader.training.measured_training", measured_training)
    return begun


@pytest.mark.slow
def test_two_epochs_tell_how_long_all_take(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one also warms up; the training ends once that is known."""
    begun = trained(monkeypatch, Rehearsal((STAGE,)), [9.0, 2.0, 2.0, 2.0])
    (told,) = training_estimates(found, "synthetic", device="cpu")
    assert (told.epochs, told.epoch_seconds, told.seconds, told.why_not) == (EPOCHS, 2.0, 60.0, "")
    assert begun == [1, 2]


def test_what_cannot_be_told_says_why(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(monkeypatch, Rehearsal((STAGE,)), [])
    (told,) = training_estimates(found, "synthetic", device="cpu")
    assert told.seconds is None and told.why_not == "Training ended in epoch 1: it raised."
    trained(monkeypatch, Rehearsal(complete=False, fault="It cannot be trained: it raised."), [1.0, 1.0])
    (told,) = training_estimates(found, "synthetic", device="cpu")
    assert told.seconds is None and told.why_not == "It cannot be trained: it raised."
