"""Near the threshold, three seeds are trained, and what our time does not allow is known early."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from grader.domain.analyzed_program import Program, Script
from grader.domain.evidence import TrainingOutcome
from grader.domain.formatting import Said
from grader.kit.splits import Splits
from grader.protocol.replies import EpochDone, Problem, Raised, Trained, TrainingPlan
from grader.training import EpochReport, Job, Measured, measured_training, repeated_training
from grader.training.metrics import T_95, accuracy_interval, wilson_interval

Scripted = Callable[..., Any]
PLAN = TrainingPlan(1, 4, "SGD", "", "cpu")
SEEDS = (90, 7, 31)  # of the trainings, in no order


def logits(splits: Splits, wrong: int) -> Any:
    """Scores of which some are wrong."""
    made = np.zeros((len(splits.test_labels), 3), dtype=np.float32)
    shift = np.arange(len(made)) < wrong
    made[np.arange(len(made)), (splits.test_labels + shift) % 3] = 2.0
    return made


def training(splits: Splits, wrong: int) -> tuple[Any, ...]:
    """The replies of a training of one epoch."""
    arrays = {"logits": logits(splits, wrong)}
    return PLAN, EpochDone(1, 0.1, arrays=arrays), Trained(1, arrays=arrays)


@pytest.fixture
def repeated(scripted: Scripted, job: Job) -> Callable[..., tuple[Measured, list[Any], list[EpochReport]]]:
    """Train with workers that make so many errors (or reply so), one after the other."""

    def run(
        script: Sequence[int | tuple[Any, ...]], threshold: float | None, runs: int = 1
    ) -> tuple[Measured, list[Any], list[EpochReport]]:
        replies = [training(job.splits, each) if isinstance(each, int) else each for each in script]
        made: list[Any] = []
        calls: list[None] = []
        told: list[EpochReport] = []

        def workers() -> Any:
            if len(calls) % 2 == 0:
                made.append(scripted(*replies[len(made)]))
            calls.append(None)
            return made[-1]()

        def numbered(number: int) -> Job:
            return replace(job, seed=SEEDS[number - 1])

        return repeated_training(workers, numbered, threshold, told.append, runs), made, told

    return run


def test_near_the_threshold_the_mean_of_three_seeds_counts(repeated: Callable[..., Any], job: Job) -> None:
    """Each with another seed; the pictures are of the first."""
    found, workers, told = repeated([5, 3, 4], 8 / 13)
    assert found.training.runs == pytest.approx((8 / 13, 10 / 13, 9 / 13))
    assert found.training.accuracy == pytest.approx(9 / 13)
    assert found.training.interval == pytest.approx(accuracy_interval(found.training.runs, 13))
    assert sum(row[index] for index, row in enumerate(found.training.confusion)) == 8
    seeds = [worker.requests[1].seed for worker in workers]
    assert tuple(seeds) == SEEDS
    assert [(each.run, each.runs) for each in told] == [(1, 1), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("wrong", "threshold", "count"),
    [(5, 0.60, 3), (5, 0.65, 3), (5, 0.57, 1), (5, 0.66, 1), (5, None, 1), (0, 0.6, 1)],
)
def test_far_from_it_one_training_is_enough(
    repeated: Callable[..., Any], wrong: int, threshold: float | None, count: int
) -> None:
    """Eight of thirteen are 61.5 %: four points to either side."""
    found, workers, _ = repeated([wrong] * count, threshold)
    assert len(workers) == count
    assert len(found.training.runs) == (count if count > 1 else 0)


def test_a_repetition_that_fails_is_kept_as_what_it_is(repeated: Callable[..., Any]) -> None:
    """The others' mean is known, and so is which of them nobody knows the accuracy of, and why."""
    raised = (PLAN, Raised(Problem("ValueError", Said("no luck"), "homework.py:9")))
    found, _, _ = repeated([5, raised, 3], 8 / 13)
    assert found.training.runs == pytest.approx((8 / 13, 10 / 13))
    assert found.training.outcome is TrainingOutcome.COMPLETED and found.notes == ()
    (unfinished,) = found.training.unfinished
    assert (unfinished.number, unfinished.outcome) == (2, TrainingOutcome.FAILED)
    assert unfinished.where == "homework.py:9" and "ended in epoch 1" in unfinished.reason


def test_a_repetition_that_a_crowded_gpu_ends_is_told(scripted: Scripted, job: Job) -> None:
    """The training is then done again alone, as where the first of them meets that."""
    memory = (PLAN, Raised(Problem("OutOfMemoryError", Said("CUDA out of memory"), resource="memory")))
    trainers = (scripted(*script) for script in (training(job.splits, 5), memory, training(job.splits, 5)))
    workers = (trainer() for trainer in trainers for _ in range(2))
    on_gpu = replace(job, device="cuda", gpu_memory_mb=2000)
    found = repeated_training(lambda: next(workers), lambda number: on_gpu, 8 / 13)
    assert found.lacked_gpu_memory and found.training.unfinished[0].outcome is TrainingOutcome.BUDGET


def test_a_training_that_fails_is_not_repeated(repeated: Callable[..., Any]) -> None:
    """It is the student's to fix, or ours."""
    found, workers, _ = repeated([(PLAN, Raised(Problem("ValueError", Said("no"))))], 0.6, 3)
    assert len(workers) == 1 and found.training.outcome is TrainingOutcome.FAILED


def test_several_seeds_on_request(repeated: Callable[..., Any]) -> None:
    """A student's own choice."""
    found, workers, told = repeated([0, 1], None, 2)
    assert len(workers) == 2 and found.training.accuracy == pytest.approx(25 / 26)
    assert told[0].runs == 2


def test_the_interval_holds_both_chances() -> None:
    """Of the images (Wilson) and of the seeds (Student's t); they add up as squares."""
    runs = (0.58, 0.60, 0.62)
    low, high = accuracy_interval(runs, 540)
    wilson = wilson_interval(0.60 * 540, 540)
    seeds = stats.t.ppf(0.975, 2) * statistics.stdev(runs) / 3**0.5
    assert high == pytest.approx(0.60 + ((wilson[1] - 0.60) ** 2 + seeds**2) ** 0.5, abs=1e-5)
    assert low == pytest.approx(0.60 - ((0.60 - wilson[0]) ** 2 + seeds**2) ** 0.5, abs=1e-5)
    assert accuracy_interval((0.6,), 540) == wilson
    assert accuracy_interval((0.0, 1.0, 1.0), 5) == (0.0, 1.0)
    for freedom, quantile in T_95.items():
        assert quantile == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-4)


# --- what our time does not allow -------------------------------------------------------------------------


class Clock:
    """A clock that each reply of a worker moves by some seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now = 1000.0
        self.step = step
        monkeypatch.setattr("grader.training.training_record.time", SimpleNamespace(monotonic=self.read))

    def read(self) -> float:
        """The time; it moves on when it is read."""
        self.now += self.step
        return self.now


def epochs(splits: Splits, planned: int, count: int) -> list[Any]:
    """The replies of a training that has not ended."""
    arrays = {"logits": logits(splits, 2)}
    plan = replace(PLAN, epochs=planned)
    return [plan, *(EpochDone(number, 0.1, arrays=arrays) for number in range(1, count + 1))]


def test_what_takes_too_long_is_known_after_two_epochs(
    scripted: Scripted, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is cut short: it is not carried on at all, and can be trained with more time."""
    Clock(monkeypatch, 1.0)
    slow = replace(job, limits=replace(job.limits, training_seconds=60.0))
    worker = scripted(*epochs(job.splits, 100, 3), "hang")
    found = measured_training(worker, slow).training
    assert found.outcome is TrainingOutcome.BUDGET and len(found.epochs) == 2
    assert found.projected_seconds == pytest.approx(100, rel=0.1)
    assert "After 2 of 100 epochs it was clear that all of them would take about" in found.reason
    assert "our limit is 60 s" in found.reason and "unknown, not zero" in found.reason
    assert found.accuracy == pytest.approx(11 / 13)  # of which a floor is made


def test_what_fits_is_carried_on(scripted: Scripted, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first epochs are slow together with what comes before them."""
    Clock(monkeypatch, 1.0)
    enough = replace(job, limits=replace(job.limits, training_seconds=20.0))
    replies = epochs(job.splits, 8, 8)
    end = Trained(8, arrays={"logits": logits(job.splits, 2)})
    found = measured_training(scripted(*replies, end), enough).training
    assert (found.outcome, found.projected_seconds) == (TrainingOutcome.COMPLETED, None)


def test_a_loop_that_may_stop_early_is_given_its_time(
    scripted: Scripted, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number of epochs is what it takes at most."""
    Clock(monkeypatch, 1.0)
    program = Program("homework.py", script=Script(may_stop=True))
    stops = replace(job, program=program, limits=replace(job.limits, training_seconds=60.0))
    end = Trained(5, arrays={"logits": logits(job.splits, 2)})
    replies = epochs(job.splits, 100, 5)
    assert measured_training(scripted(*replies, end), stops).training.epochs[-1].number == 5
    found = measured_training(
        scripted(*replies, end), replace(stops, program=Program("homework.py"))
    ).training
    assert found.outcome is TrainingOutcome.BUDGET
