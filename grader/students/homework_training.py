"""A homework, trained on the student's own machine as the grader will train it, with pictures of it."""

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from grader.course.dataset_file import SYNTHETIC
from grader.domain.errors import UsageError
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.plan import Plan
from grader.domain.program import Program
from grader.files import atomic
from grader.students.homework import Homework
from grader.students.own_training import LocalTraining, image_source, local_training, student_data

if TYPE_CHECKING:
    from grader.kit.splits import Examples, Splits
    from grader.training import EpochReport

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
        epochs: In the place of the number that the source states; None: as it states.
    """

    out: Path
    data: str | None = None
    device: str = "auto"
    seeds: int = 1
    measure: str | None = None
    epochs: int | None = None


class TrainWatcher(Protocol):
    """Whoever is told how a training goes on."""

    def read(self, program: Program, plan: Plan) -> None:
        """The file was read, and its training tried."""

    def images(self, splits: "Splits") -> None:
        """The images are there; training begins."""

    def epoch(self, told: "EpochReport") -> None:
        """An epoch was measured."""


@dataclass(frozen=True)
class StoppedTraining:
    """What there was when a person stopped a training.

    Attributes:
        epochs: Those that were done, of the training that was at work.
        planned: How many there were to be.
    """

    program: Program | None
    epochs: tuple[Epoch, ...]
    planned: int


def train_homework(
    found: Homework, request: TrainRequest, *, watch: Callable[[], AbstractContextManager[TrainWatcher]]
) -> LocalTraining | StoppedTraining:
    """Train a homework as the grader will, and measure it.

    Args:
        watch: For as long as it trains, who is told how it goes on.

    Raises:
        UsageError: There are no such images, no such device, or the pictures could not be written.
        SubmissionError: The file cannot be read as a script or a notebook.
        KeyboardInterrupt: A person stopped it before an epoch was done.
    """
    require_writable(request.out)  # who waits for hours must not learn of it at their end
    source = image_source(found.local, request.data, beside=found.path.parent)
    told: list[EpochReport] = []
    read: list[Program] = []
    with watch() as watcher:

        def data() -> "Splits | Examples":
            from grader.kit.splits import Splits

            loaded = student_data(found.local, source)
            if isinstance(loaded, Splits):
                watcher.images(loaded)
            return loaded

        def began(program: Program, plan: Plan) -> None:
            read.append(program)
            watcher.read(program, plan)

        def report(epoch: "EpochReport") -> None:
            told.append(epoch)
            watcher.epoch(epoch)

        try:
            return local_training(
                found.path,
                found.local,
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
            if not told:
                raise
    last = told[-1]
    epochs = tuple(each.epoch for each in told if each.run == last.run)
    return StoppedTraining(next(iter(read), None), epochs, last.planned)


def write_results(done: LocalTraining | StoppedTraining, out: Path) -> tuple[Path, ...]:
    """Draw what a training came to, also of one that was stopped, and write its numbers.

    Returns:
        The files; nothing where no epoch was done.

    Raises:
        UsageError: The disk does not take them.
    """
    stopped = isinstance(done, StoppedTraining)
    training = (
        Training(TrainingOutcome.NOT_RUN, epochs=done.epochs, planned_epochs=done.planned)
        if isinstance(done, StoppedTraining)
        else done.training
    )
    if not training.epochs:
        return ()
    from grader.reports.plots.training_plots import write_training_plots

    atomic.make_folder(out, remedy=ELSEWHERE)
    threshold = done.item.threshold if isinstance(done, LocalTraining) and done.item else None
    try:
        pictures = write_training_plots(training, out, threshold=threshold)
    except OSError as error:
        raise UsageError(f"{out} cannot be written ({error.strerror}). {ELSEWHERE}") from error
    atomic.write(out / SUMMARY, _summary(training, stopped=stopped).encode("utf-8"), remedy=ELSEWHERE)
    return (*pictures, out / SUMMARY)


def _summary(training: Training, *, stopped: bool) -> str:
    """The epochs as a table, and what was measured in the end."""
    lines = ["epoch,train_loss,test_loss,test_accuracy,learning_rate,seconds"]
    lines += [
        ",".join(
            "" if value is None else f"{value:.6g}"
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
    """Check that a folder may be written to, or made. Nothing is left there.

    Raises:
        UsageError: It may not.
    """
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be written ({error.strerror}). {ELSEWHERE}") from error
