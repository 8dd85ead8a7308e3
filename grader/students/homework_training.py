"""A homework's training on the student's own machine: an estimate of its time, the training, its pictures.

It estimates the time from a trial and a few epochs, and trains the model that was asked for. It keeps the
epochs so far when a person stops it, and writes the curves and the table of epochs. How one training runs
and is measured is decided in `grader.students.own_training`.
"""

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from grader.course.dataset_file import SYNTHETIC
from grader.domain.analyzed_program import Program
from grader.domain.errors import Interruption, UsageError
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.measure import Measure
from grader.domain.program_run import Plan
from grader.files import atomic
from grader.students.homework import Homework
from grader.students.own_machine import OwnWorkers, own_program, own_seed, with_own_machine_limits
from grader.students.own_training import (
    LocalTraining,
    chosen_device,
    image_source,
    local_training,
    student_data,
)

if TYPE_CHECKING:
    from grader.kit.splits import Examples, Splits
    from grader.training import EpochReport


TRIED = 2  # epochs: the first one also warms up


@dataclass(frozen=True)
class TrainingEstimate:
    """What training one of the models takes.

    Attributes:
        epochs: Of the whole training, counted in a trial on made-up images; None: unknown.
        epoch_seconds: Of one epoch, with the evaluation on the test images; None: none was completed.
        why_not: Why the estimate is not known, as a sentence.
    """

    measure: Measure
    epochs: int | None = None
    epoch_seconds: float | None = None
    why_not: str = ""

    @property
    def seconds(self) -> float | None:
        """How long the whole training takes; None where that is not known."""
        if self.epochs is None or self.epoch_seconds is None:
            return None
        return self.epochs * self.epoch_seconds


class _EnoughSeen(Interruption):
    """Ends a training once it is known how long its epochs take."""


def training_estimates(
    work: Homework, data: str | None = None, *, device: str = "auto"
) -> Iterator[TrainingEstimate]:
    """An estimate for each model that the homework trains by itself, one after the other.

    Args:
        data: A zip or folder of images, or `synthetic`; None: the dataset.zip beside the homework.

    Raises:
        UsageError: There are no such images, or no such device.
        SubmissionError: The file cannot be read as a script or a notebook.
    """
    assignment = with_own_machine_limits(work.local.assignment)
    source = image_source(work.local, data, beside=work.path.parent)
    splits, where = None, chosen_device(device)
    for measure in assignment.measures:
        if measure.call is not None:
            yield TrainingEstimate(measure, why_not="It is trained by one call, of which no part is timed.")
            continue
        program = own_program(work.path, assignment).read_for(measure.id)
        if program.script.missing:
            yield TrainingEstimate(measure, why_not=f"Nothing is trained: {program.script.missing}.")
            continue
        from grader.training import Job, job_of, measured_training, rehearsed

        splits = splits if splits is not None else student_data(work.local, source)
        seconds: list[float] = []
        with OwnWorkers(assignment, work.path.parent) as workers:
            job = job_of(
                assignment,
                measure,
                splits,
                program=program,
                limits=assignment.limits,
                forbidden=assignment.forbidden_patterns,
                device=where,
                seed=own_seed(work.path, "training"),
            )
            assert isinstance(job, Job)  # no call trains it
            rehearsal = rehearsed(workers, job)
            tried = min(TRIED, rehearsal.epochs or TRIED)

            def report(measured: "EpochReport", seconds: list[float] = seconds, tried: int = tried) -> None:
                seconds.append(measured.epoch.seconds or 0.0)
                if len(seconds) >= tried:
                    raise _EnoughSeen

            reason = rehearsal.fault
            try:
                reason = measured_training(workers, job, report).training.reason or reason
            except _EnoughSeen:
                reason = reason if rehearsal.epochs is None else ""
        epoch_seconds = min(seconds, default=None)
        why_not = "" if rehearsal.epochs is not None and epoch_seconds is not None else reason
        yield TrainingEstimate(measure, rehearsal.epochs, epoch_seconds, why_not)


# --- homework training -----------------------------------------------------------------------------------


SUMMARY = "epochs.csv"
ELSEWHERE = "Choose another place: --out FOLDER."


@dataclass(frozen=True)
class TrainRequest:
    """How a homework is to be trained.

    Attributes:
        out: The folder for pictures: learning curves and confusion matrix.
        data: A zip or folder of images, or `synthetic`; None: the dataset.zip beside the homework.
        device: `cpu`, `cuda`, or `auto`: a GPU when there is one.
        seeds: How many times to train, each time with another seed.
        measure: Which of the models, by its measure's id; None: the first.
        epochs: Instead of the number that the source states; None: as it states.
    """

    out: Path
    data: str | None = None
    device: str = "auto"
    seeds: int = 1
    measure: str | None = None
    epochs: int | None = None


class TrainWatcher(Protocol):
    """Follows the progress of a training."""

    def read(self, program: Program, plan: Plan) -> None:
        """The file has been read, and its training tried."""

    def images(self, splits: "Splits") -> None:
        """The images have been loaded; training begins."""

    def epoch(self, report: "EpochReport") -> None:
        """An epoch has been measured."""


@dataclass(frozen=True)
class StoppedTraining:
    """What a training had reached when a person stopped it.

    Attributes:
        epochs: The completed epochs of the run that was stopped.
        planned: How many epochs that run was to have.
    """

    program: Program | None
    epochs: tuple[Epoch, ...]
    planned: int


def train_homework(
    work: Homework, request: TrainRequest, *, watch: Callable[[], AbstractContextManager[TrainWatcher]]
) -> LocalTraining | StoppedTraining:
    """Train a homework as the grader will, and measure it.

    Args:
        watch: Opens what follows the progress, for as long as it trains.

    Raises:
        UsageError: There are no such images, no such device, or the pictures could not be written.
        SubmissionError: The file cannot be read as a script or a notebook.
        KeyboardInterrupt: A person stopped it before an epoch was done.
    """
    require_writable(request.out)  # nobody should learn of it only after hours of training
    source = image_source(work.local, request.data, beside=work.path.parent)
    reports: list[EpochReport] = []
    read: list[Program] = []
    with watch() as watcher:

        def data() -> "Splits | Examples":
            from grader.kit.splits import Splits

            loaded = student_data(work.local, source)
            if isinstance(loaded, Splits):
                watcher.images(loaded)
            return loaded

        def began(program: Program, plan: Plan) -> None:
            read.append(program)
            watcher.read(program, plan)

        def report(epoch: "EpochReport") -> None:
            reports.append(epoch)
            watcher.epoch(epoch)

        try:
            return local_training(
                work.path,
                work.local,
                data,
                device=request.device,
                read=began,
                report=report,
                seeds=request.seeds,
                measure=request.measure,
                epochs=request.epochs,
                synthetic=request.data == SYNTHETIC,
            )
        except KeyboardInterrupt:
            if not reports:
                raise
    last = reports[-1]
    epochs = tuple(report_of_run.epoch for report_of_run in reports if report_of_run.run == last.run)
    return StoppedTraining(next(iter(read), None), epochs, last.planned)


def write_results(done: LocalTraining | StoppedTraining, out: Path) -> tuple[Path, ...]:
    """Draw the results of a training, also of one that was stopped, and write its numbers.

    Returns:
        The files; empty where no epoch was completed.

    Raises:
        UsageError: They cannot be written.
    """
    was_stopped = isinstance(done, StoppedTraining)
    training = (
        Training(TrainingOutcome.NOT_RUN, epochs=done.epochs, planned_epochs=done.planned)
        if isinstance(done, StoppedTraining)
        else done.training
    )
    if not training.epochs:
        return ()
    from grader.reports.plots.training_plots import write_training_plots

    atomic.make_folder(out, remedy=ELSEWHERE)
    threshold = None
    if isinstance(done, LocalTraining) and done.item is not None and done.is_accuracy:
        threshold = done.item.threshold
    try:
        pictures = write_training_plots(training, out, threshold=threshold)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}). {ELSEWHERE}") from error
    atomic.write(out / SUMMARY, _summary(training, stopped=was_stopped).encode("utf-8"), remedy=ELSEWHERE)
    return (*pictures, out / SUMMARY)


def _summary(training: Training, *, stopped: bool) -> str:
    """The epochs as a table, and what was measured in the end."""
    lines = ["epoch,train_loss,test_loss,test_accuracy,learning_rate,seconds"]
    lines += [
        ",".join(
            "" if value is None or not math.isfinite(value) else f"{value:.6g}"
            for value in (
                epoch.number,
                epoch.train_loss,
                epoch.test_loss,
                epoch.test_accuracy,
                epoch.learning_rate,
                epoch.seconds,
            )
        )
        for epoch in training.epochs
    ]
    if stopped:
        lines.append(f"# stopped after {len(training.epochs)} of {training.planned_epochs} epochs")
    elif training.measured is not None:
        lines.append(f"# measured: {training.measured:.6g}")
    return "\n".join(lines) + "\n"


def require_writable(folder: Path) -> None:
    """Check that a folder can be written to, or made. Nothing is left there.

    Raises:
        UsageError: It cannot.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be written ({error.strerror}). {ELSEWHERE}") from error
