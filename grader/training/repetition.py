"""Training near the threshold, where chance would decide: three seeds, and the mean counts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grader.domain.evidence import Training, TrainingOutcome, UnfinishedRun
from grader.domain.measure import SHARE, Scale
from grader.training.accuracy import accuracy_interval
from grader.training.called_training import called_training
from grader.training.measured_training import measured_training
from grader.training.own_measure import mean_interval
from grader.training.training_job import AnyJob, CalledJob, EpochReport, Measured, Report, Workers

RUNS = 3


def repeated_training(
    workers: Workers,
    jobs: Callable[[int], AnyJob],
    threshold: float | None,
    report: Report = lambda told: None,
    runs: int = 1,
    scale: Scale = SHARE,
) -> Measured:
    """Train the submission; near the threshold three times, each with a seed of its own.

    Args:
        jobs: The job of each training by its number, 1-based, with the seeds of that number.
        threshold: What the assignment asks for; None if there is nothing.
        report: Told each epoch.
        runs: Train at least so many times, whatever is measured.
        scale: How the threshold and what is measured are read.

    Returns:
        The first training, of which the mean of all that were completed counts. Those that were not are
        in it too: what they would have come to nobody knows.
    """
    first = trained_once(workers, jobs(1), _numbered(report, 1, runs))
    training, value = first.training, first.training.measured
    if training.outcome is not TrainingOutcome.COMPLETED or value is None:
        return first
    if is_near(training, threshold, scale):
        runs = max(runs, RUNS)
    if runs == 1:
        return first
    values, unfinished, crowded = [value], [], first.crowded
    doubts, objections = dict.fromkeys(training.doubts), dict.fromkeys(training.objections)
    for run in range(2, runs + 1):
        other = trained_once(workers, jobs(run), _numbered(report, run, runs))
        ended = other.training
        first = replace(first, watched=first.watched | other.watched)
        doubts |= dict.fromkeys(ended.doubts)
        objections |= dict.fromkeys(ended.objections)
        if ended.outcome is TrainingOutcome.COMPLETED and ended.measured is not None:
            values.append(ended.measured)
        else:
            unfinished.append(
                UnfinishedRun(run, ended.outcome, ended.reason, ended.where, ended.projected_seconds)
            )
            crowded |= other.crowded
    training = replace(
        _with_mean(training, values),
        runs=tuple(values),
        doubts=tuple(doubts),
        objections=tuple(objections),
        unfinished=tuple(unfinished),
    )
    return replace(first, training=training, crowded=crowded)


def trained_once(workers: Workers, job: AnyJob, report: Report = lambda told: None) -> Measured:
    """Train the submission once, as the job says."""
    if isinstance(job, CalledJob):
        return called_training(workers, job, report)
    return measured_training(workers, job, report)


def _with_mean(training: Training, values: Sequence[float]) -> Training:
    mean = sum(values) / len(values)
    if training.value is not None:
        interval = mean_interval(values, training.interval or (values[0], values[0]))
        return replace(training, value=mean, interval=interval)
    images = sum(map(sum, training.confusion))
    return replace(training, accuracy=mean, interval=accuracy_interval(values, images))


def is_near(training: Training, threshold: float | None, scale: Scale = SHARE) -> bool:
    """Whether what was measured is so near the threshold that another seed might be on its other side."""
    if threshold is None or training.measured is None:
        return False
    return scale.is_near(training.measured, threshold)


def _numbered(report: Report, run: int, runs: int) -> Report:
    return lambda told: report(EpochReport(told.epoch, told.planned, run, runs))
