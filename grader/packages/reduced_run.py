"""The reduced run of a package: the student's own training, on the few examples that the package holds.

The schedule is the student's, with all its epochs; only the examples are fewer. It tells whether the training
runs, and what it measures as information. It decides about points only where the instructor said so. It
formats no results file.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.domain.measure import Measure
from grader.domain.score import LineState, Score
from grader.domain.submission import Submission
from grader.grading.run import Run
from grader.grading.submission_run import trained_on
from grader.packages.package_data import read_packed_data
from grader.packages.package_settings import PackageSettings, ReducedRun
from grader.training.measured_training import RUNS

_MEMORY_SHARE = 0.75  # of a student's process: two are there at once, of which one measures
_TIME_SHARE = 0.8  # of what is left of the run: the rest is for rehearsals and weights that were handed in
_LEAST_SECONDS = 5.0
TITLE = "Does the training run? Tried on few examples."
NOT_FINISHED = (
    "The training on few examples did not finish within the time and memory of this run, so it is not known "
    "whether it runs."
)
NOT_MADE = (
    "The grader could not train it here. That is not your fault; it is not known whether the training runs."
)
NO_TIME = "The checks left no time for the training, so it is not known whether it runs."
DECIDED_ELSEWHERE = (
    "It is decided by a training on all examples, which `grader grade` makes; what is trained here has few."
)


class Runs(StrEnum):
    """Whether a training runs."""

    YES = "yes"
    NO = "no"  # through a fault of the student's code
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ReducedOutcome:
    """What a reduced run tells the student.

    Attributes:
        runs: Whether all trainings run from beginning to end.
        sentences: What became of each, for the student.
    """

    runs: Runs
    sentences: tuple[str, ...]


def unknown(sentence: str) -> ReducedOutcome:
    """The outcome where nothing is known."""
    return ReducedOutcome(Runs.UNKNOWN, (sentence,))


def has_code(evidence: Evidence) -> bool:
    """Whether there is something to train."""
    return evidence.status is None and bool(evidence.code_file)


def reduced_evidence(
    run: Run, submission: Submission, checked: Evidence, settings: PackageSettings, package: Path, end: float
) -> Evidence | None:
    """The evidence with a training on the package's examples; None if there was no time for it.

    Args:
        run: With the limits of the package.
        checked: What is known of the submission.
        package: The package's folder.
        end: When the run will be ended, by the monotonic clock.

    Raises:
        GraderError: The package is damaged, or the grader failed.
    """
    assert settings.reduced is not None
    assignment = _as_reduced(run.assignment, settings, _TIME_SHARE * (end - time.monotonic()))
    if assignment.limits.training_seconds < _LEAST_SECONDS:
        return None
    return trained_on(replace(run, assignment=assignment), submission, read_packed_data(package), checked)


def _as_reduced(assignment: Assignment, settings: PackageSettings, seconds: float) -> Assignment:
    """The assignment with limits for its trainings, and without those that only points need.

    Args:
        seconds: For all trainings together.
    """
    assert settings.reduced is not None
    decides = settings.reduced.decides
    rubric = assignment.rubric
    if not decides:  # near a threshold, three seeds would be trained
        rubric = tuple(replace(item, threshold=None) for item in rubric)
    trainings = len(assignment.measures) * (RUNS if any(item.threshold is not None for item in rubric) else 1)
    limits = replace(
        assignment.limits,
        training_seconds=min(assignment.limits.training_seconds, seconds / trainings),
        memory_mb=min(assignment.limits.memory_mb, int(settings.worker_memory_mb * _MEMORY_SHARE)),
    )
    return replace(assignment, limits=limits, rubric=rubric, study=None)


def left_open(assignment: Assignment, score: Score) -> Score:
    """The score, whose measured lines say why a training on few examples leaves them open."""
    measured = {item.id for item in assignment.rubric if item.measured is not None}
    lines = tuple(
        replace(line, reason=DECIDED_ELSEWHERE)
        if line.id in measured and line.state is LineState.NOT_RUN
        else line
        for line in score.lines
    )
    return replace(score, lines=lines)


# --- sentences -------------------------------------------------------------------------------------------


def reduced_outcome(assignment: Assignment, evidence: Evidence, reduced: ReducedRun) -> ReducedOutcome:
    """What the student reads of a reduced run.

    Where its measurements give the points, they are told with the points, and not here.
    """
    sentences: list[str] = []
    trainings = []
    for measure in assignment.measures:
        model = evidence.of_measure(measure.id)
        trainings.append(model.training)
        title = f"{measure.title}: " if len(assignment.measures) > 1 and measure.title else ""
        about = [*_training(model.training, measure, reduced), *_weights(model.checkpoint)]
        sentences += [title + about[0], *about[1:]]
    return ReducedOutcome(_runs(trainings), tuple(sentences))


def _runs(trainings: list[Training]) -> Runs:
    outcomes = {training.outcome for training in trainings}
    if outcomes & {TrainingOutcome.FAILED, TrainingOutcome.DIVERGED}:
        return Runs.NO
    return Runs.YES if outcomes == {TrainingOutcome.COMPLETED} else Runs.UNKNOWN


def _training(training: Training, measure: Measure, reduced: ReducedRun) -> Iterator[str]:
    epochs = len(training.epochs)
    match training.outcome:
        case TrainingOutcome.COMPLETED:
            yield f"The training runs: it ended without an error on {reduced.train} examples."
            yield from _measured(training, measure, reduced)
        case TrainingOutcome.FAILED:
            where = f" ({training.where})" if training.where and training.where not in training.reason else ""
            yield f"The training fails{where}. {training.reason}"
        case TrainingOutcome.DIVERGED:
            yield f"The training diverges. {training.reason}"
        case TrainingOutcome.BUDGET:
            yield (
                f"A limit of this run ended the training on {reduced.train} examples after {epochs} epochs. "
                "It is not known whether it runs to its end."
            )
        case _:
            yield f"It is not known whether the training runs. {training.reason}".rstrip()


def _measured(training: Training, measure: Measure, reduced: ReducedRun) -> Iterator[str]:
    if reduced.decides or training.measured is None:
        return
    value = measure.scale.shown(training.measured)
    yield (
        f"On {reduced.test} others, which it has not seen, it reaches {value}. With so few examples "
        "that says little about the value that counts."
    )


def _weights(checkpoint: Checkpoint) -> Iterator[str]:
    """What is wrong with the weights that were handed in."""
    if checkpoint.status in ("mismatch", "refused") and checkpoint.reason:
        yield checkpoint.reason
