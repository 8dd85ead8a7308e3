"""Training near the threshold, where chance would decide: three seeds, and the mean counts."""

from dataclasses import replace

from grader.domain.evidence import TrainingOutcome
from grader.training.accuracy import accuracy_interval
from grader.training.job import EpochReport, Job, Measured, Report, Workers
from grader.training.measurement import measured_training

RUNS = 3
NEAR = 0.04  # of the threshold


def repeated_training(
    workers: Workers, job: Job, threshold: float | None, report: Report = lambda told: None, runs: int = 1
) -> Measured:
    """Train the submission; near the threshold three times, each with a seed of its own.

    Args:
        threshold: The accuracy that the assignment asks for, 0 to 1; None if there is none.
        report: Told each epoch.
        runs: Train at least so many times, wherever the accuracy is.

    Returns:
        The first training, whose accuracy is the mean of all that were completed.
    """
    first = measured_training(workers, job, _numbered(report, 1, runs))
    training = first.training
    if training.outcome is not TrainingOutcome.COMPLETED or training.accuracy is None:
        return first
    if is_near(training.accuracy, threshold):
        runs = max(runs, RUNS)
    accuracies, notes = [training.accuracy], list(first.notes)
    for run in range(2, runs + 1):
        other = measured_training(
            workers, replace(job, seed=job.seed + run - 1), _numbered(report, run, runs)
        )
        first = replace(first, watched=first.watched | other.watched)
        if other.training.outcome is TrainingOutcome.COMPLETED and other.training.accuracy is not None:
            accuracies.append(other.training.accuracy)
        else:
            notes.append(
                f"Training {run} of {runs}, with another seed, does not count: {other.training.reason}"
            )
    if runs == 1:
        return first
    mean = sum(accuracies) / len(accuracies)
    images = sum(map(sum, training.confusion))
    training = replace(
        training,
        accuracy=mean,
        interval=accuracy_interval(accuracies, images),
        runs=tuple(accuracies),
    )
    return replace(first, training=training, notes=tuple(notes))


def is_near(accuracy: float, threshold: float | None) -> bool:
    """Whether an accuracy is so near the threshold that another seed might be on its other side."""
    return threshold is not None and abs(accuracy - threshold) <= NEAR + 1e-9


def _numbered(report: Report, run: int, runs: int) -> Report:
    return lambda told: report(EpochReport(told.epoch, told.planned, run, runs))
