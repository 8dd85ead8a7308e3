"""What is told of a reference that was trained and measured."""

from dataclasses import replace

import pytest

from grader.course.homework_versions import HomeworkVersion, Kind
from grader.domain.analyzed_program import Program
from grader.domain.assignment import RubricItem
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.limits import Limits
from grader.domain.measure import Measure, Scale
from grader.protocol.replies import Problem, Said
from grader.training.training_job import Execution
from grader.validation.measured_versions import MeasuredVersion, why_unmeasured

LOWER = Scale(lower_is_better=True, is_share=False)
LOSS = Measure("loss", function="loss", scale=LOWER, reference=2.0)
ITEM = RubricItem(
    "measured", "Measured", 5, measured="loss", scale=LOWER, breakpoints=((2.1, 5.0), (3.0, 0.0))
)
FOUND = MeasuredVersion(
    HomeworkVersion(Kind.REFERENCE, "reference", "solution.py", ""),
    LOSS,
    Training(TrainingOutcome.COMPLETED, value=2.0, runs=(1.9, 2.0, 2.1)),
    ITEM,
)


def with_values(*values: float) -> MeasuredVersion:
    """What three trainings gave."""
    training = replace(FOUND.training, value=sum(values) / len(values), runs=values)
    return replace(FOUND, training=training)


def test_a_reference_that_holds() -> None:
    """Full points begin two standard deviations to the worse side of the mean."""
    assert FOUND.faults == () and FOUND.points == 5
    assert FOUND.deviation == pytest.approx(0.1) and FOUND.full_from == pytest.approx(2.2)
    accuracy = replace(FOUND, measure=Measure("a"), item=None, training=replace(FOUND.training))
    assert accuracy.full_from == pytest.approx(1.8) and accuracy.points is None


def test_a_reference_that_earns_less_or_reaches_another_value() -> None:
    """Each is a sentence with what to do."""
    (less,) = with_values(2.0, 2.2, 2.4).faults
    assert less.startswith("The reference earns 4.44 of 5 points in measured. Move its breakpoints")
    (other,) = with_values(1.5, 1.51, 1.52).faults
    assert other == (
        "The reference reaches 1.51, and assignment.toml states 2. Write reference = 1.51 in [[measure]] "
        "'loss'."
    )
    broken = replace(FOUND, training=Training(TrainingOutcome.FAILED, reason="It raised."))
    assert broken.faults == ("The reference is not measured: It raised.",)


def test_of_a_mistake_nothing_is_asked() -> None:
    """It may reach whatever it does."""
    mistake = HomeworkVersion(Kind.MISTAKE, "no_mask", "mistakes/no_mask.py", "", ("Attention",))
    assert replace(with_values(9.0, 9.1), version=mistake).faults == ()


def test_what_the_instructors_own_code_raised_is_told_in_full() -> None:
    """With its line; of a student's training, words could convey what is hidden."""
    problem = Problem("RuntimeError", Said("Input type (double) and bias type (float) differ"))
    job = Execution(Program("homework.py"), Limits(), order_seed=1)
    assert job.raised(problem) == "RuntimeError"
    assert "Input type (double)" in replace(job, is_own=True).raised(problem)
    version = replace(FOUND.version, source="x = 1\nfit(x)\n")
    failed = Training(TrainingOutcome.FAILED, reason="It raised.", where="homework.py:2")
    assert why_unmeasured(version, failed) == "It raised. It was at `fit(x)`."


def test_with_each_choice_of_a_drawn_value_one_reference_is_stated_for_all() -> None:
    """Which of them reach more is no fault: they would contradict each other; each is told by its values."""
    drawn = replace(FOUND, drawn={"kernel": 5}, is_one_of_many=True)
    training = replace(FOUND.training, value=1.5, runs=(1.49, 1.5, 1.51))
    assert drawn.title == "reference (kernel = 5)"
    assert replace(drawn, training=training).faults == ()
    [worse] = replace(drawn, item=None, training=replace(training, value=2.5, runs=(2.49, 2.5, 2.51))).faults
    assert worse.startswith("The reference (kernel = 5) reaches 2.5, and assignment.toml states 2.")
