"""Training near the threshold, where chance would decide: three seeds, and the mean counts."""

from collections.abc import Callable
from dataclasses import replace

from grader.domain.assignment import NEAR_THRESHOLD
from grader.domain.evidence import TrainingOutcome, UnfinishedRun
from grader.training.accuracy import accuracy_interval
from grader.training.measured_training import measured_training
from grader.training.training_job import EpochReport, Job, Measured, Report, Workers

RUNS = 3


def repeated_training(
    workers: Workers,
    jobs: Callable[[int], Job],
    threshold: float | None,
    report: Report = lambda told: None,
    runs: int = 1,
) -> Measured:
    """Train the submission; near the threshold three times, each with a seed of its own.

    Args:
        jobs: The job of each training by its number, 1-based, with the seeds of that number.
        threshold: The accuracy that the assignment asks for, 0 to 1; None if there is none.
        report: Told each epoch.
        runs: Train at least so many times, wherever the accuracy is.

    Returns:
        The first training, whose accuracy is the mean of all that were completed. Those that were not are
        in it too: what they would have come to nobody knows.
    """
    first = measured_training(workers, jobs(1), _numbered(report, 1, runs))
    training = first.training
    if training.outcome is not TrainingOutcome.COMPLETED or training.accuracy is None:
        return first
    if is_near(training.accuracy, threshold):
        runs = max(runs, RUNS)
    if runs == 1:
        return first
    accuracies, unfinished, crowded = [training.accuracy], [], first.crowded
    doubts, objections = dict.fromkeys(training.doubts), dict.fromkeys(training.objections)
    for run in range(2, runs + 1):
        other = measured_training(workers, jobs(run), _numbered(report, run, runs))
        ended = other.training
        first = replace(first, watched=first.watched | other.watched)
        doubts |= dict.fromkeys(ended.doubts)
        objections |= dict.fromkeys(ended.objections)
        if ended.outcome is TrainingOutcome.COMPLETED and ended.accuracy is not None:
            accuracies.append(ended.accuracy)
        else:
            unfinished.append(
                UnfinishedRun(run, ended.outcome, ended.reason, ended.where, ended.projected_seconds)
            )
            crowded |= other.crowded
    mean = sum(accuracies) / len(accuracies)
    images = sum(map(sum, training.confusion))
    training = replace(
        training,
        accuracy=mean,
        interval=accuracy_interval(accuracies, images),
        runs=tuple(accuracies),
        doubts=tuple(doubts),
        objections=tuple(objections),
        unfinished=tuple(unfinished),
    )
    return replace(first, training=training, crowded=crowded)


def is_near(accuracy: float, threshold: float | None) -> bool:
    """Whether an accuracy is so near the threshold that another seed might be on its other side."""
    return threshold is not None and abs(accuracy - threshold) <= NEAR_THRESHOLD + 1e-9


def _numbered(report: Report, run: int, runs: int) -> Report:
    return lambda told: report(EpochReport(told.epoch, told.planned, run, runs))
