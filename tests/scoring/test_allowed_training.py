"""Trainings beyond what the assignment allows go to a person."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.domain.analyzed_program import Place
from grader.domain.evidence import Evidence, Training, TrainingOutcome
from grader.domain.measure import Measure, TrainingCall
from grader.domain.program_run import Plan, Rehearsal, Stage
from grader.domain.score import LineState
from grader.domain.submission_result import beyond_what_is_allowed
from grader.scoring.rubric_lines import forbidden, scored_line

LIMITED = Measure("vit", most_epochs=15, most_multiply_adds=40_000_000)


def trial(epochs: int, multiply_adds: int | None) -> Rehearsal:
    """A trial of a training."""
    stage = Stage(Place("homework.py", 1), None, "AdamW", "", 100, epochs, 0.1, 0.1)
    return Rehearsal((stage,), multiply_adds=multiply_adds)


@pytest.mark.parametrize(
    ("measure", "rehearsal", "epochs", "said"),
    [
        (LIMITED, trial(15, 40_000_000), 15, ""),
        (LIMITED, None, 0, ""),
        (
            LIMITED,
            trial(15, None),
            15,
            "The model's multiply-adds could not be counted; at most 40 million per image are allowed.",
        ),
        (Measure("vit"), trial(90, 10**9), 90, ""),
        (LIMITED, trial(16, 1), 0, "It is trained for 16 epochs; at most 15 are allowed."),
        (Measure("vit", most_epochs=15), None, 20, "It is trained for 20 epochs; at most 15 are allowed."),
        (
            LIMITED,
            trial(1, 60_500_000),
            1,
            "The model takes 60.5 million multiply-adds per image; at most 40 million are allowed.",
        ),
    ],
)
def test_what_is_more_than_allowed_is_told(
    measure: Measure, rehearsal: Rehearsal | None, epochs: int, said: str
) -> None:
    told = " ".join(beyond_what_is_allowed(measure, rehearsal, epochs))
    assert told.replace("\xa0", " ") == said


@pytest.mark.parametrize(
    ("measure", "steps", "said"),
    [
        (LIMITED, 1.0, ""),
        (LIMITED, 2.0, ""),  # batches of one's own may be half as large
        (LIMITED, None, ""),
        (
            LIMITED,
            3.0,
            "It takes 3.0 optimizer steps for each batch of an epoch: each epoch is worth about 3.",
        ),
        (Measure("vit"), 3.0, ""),
        (
            Measure("fit", call=TrainingCall("Net", "fit", given={"epochs": [3, 12]})),
            2.7,
            "It takes 2.7 optimizer steps for each batch of an epoch: each epoch is worth about 3.",
        ),
        (Measure("fit", call=TrainingCall("Net", "fit")), 2.7, ""),
    ],
)
def test_more_steps_than_batches_are_more_epochs(measure: Measure, steps: float | None, said: str) -> None:
    """Where the number of epochs is bounded."""
    assert " ".join(beyond_what_is_allowed(measure, trial(1, 1), 1, steps)) == said


@pytest.mark.parametrize(("epochs", "points"), [(15, 10.0), (16, None)])
def test_beyond_it_a_person_decides(epochs: int, points: float | None) -> None:
    """Whatever accuracy that reaches."""
    assignment = read_assignment(Path(__file__).parents[2] / "reference" / "vit_cifar10")
    evidence = Evidence(
        student_id="400101204",
        assignment_id=assignment.id,
        submission_digest="0",
        graded_at=datetime(2026, 1, 1, tzinfo=UTC),
        measure="vit_accuracy",
        plan=Plan("vit", rehearsal=trial(epochs, 1)),
        training=Training(TrainingOutcome.COMPLETED, accuracy=0.9),
    )
    found = forbidden(assignment.forbidden, (), (), ())
    item = next(each for each in assignment.rubric if each.id == "vit_training")
    line = scored_line(item, assignment, evidence, found, {})
    assert line.points == points
    if points is None:
        assert line.state is LineState.AWAITING and "at most 15 are allowed. A person decides." in line.reason
