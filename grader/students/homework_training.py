"""A homework, trained on the student's own machine as the grader will train it, with pictures of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from grader.domain.program import Program
from grader.students.homework import Homework
from grader.students.own_training import LocalTraining, image_source, local_training, student_data

if TYPE_CHECKING:
    from grader.kit.splits import Examples, Splits
    from grader.training import EpochReport


@dataclass(frozen=True)
class TrainRequest:
    """How a homework is to be trained.

    Attributes:
        out: The folder for pictures: learning curves and confusion matrix.
        data: A zip or folder of images, or `synthetic`; None: the dataset.zip beside the homework.
        device: `cpu`, `cuda`, or `auto`: a GPU when there is one.
        seeds: How many times to train, each time with another seed.
        measure: Which of the models, by its measure's id; None: the first.
    """

    out: Path
    data: str | None = None
    device: str = "auto"
    seeds: int = 1
    measure: str | None = None


class TrainWatcher(Protocol):
    """Whoever is told how a training goes on."""

    def read(self, program: Program) -> None:
        """The file was read."""

    def images(self, splits: "Splits") -> None:
        """The images are there; training begins."""

    def epoch(self, told: "EpochReport") -> None:
        """An epoch was measured."""


@dataclass(frozen=True)
class TrainedHomework:
    """What training a homework came to.

    Attributes:
        pictures: What was drawn; nothing where no epoch was finished.
    """

    trained: LocalTraining
    pictures: tuple[Path, ...]


def train_homework(
    found: Homework, request: TrainRequest, *, watch: Callable[[], AbstractContextManager[TrainWatcher]]
) -> TrainedHomework:
    """Train a homework as the grader will, and measure it.

    Args:
        watch: For as long as it trains, who is told how it goes on.

    Raises:
        UsageError: There are no such images, or no such device.
        SubmissionError: The file cannot be read as a script or a notebook.
    """
    source = image_source(found.local, request.data, beside=found.path.parent)
    with watch() as watcher:

        def data() -> "Splits | Examples":
            from grader.kit.splits import Splits

            loaded = student_data(found.local, source)
            if isinstance(loaded, Splits):
                watcher.images(loaded)
            return loaded

        trained = local_training(
            found.path,
            found.local,
            data,
            device=request.device,
            read=watcher.read,
            report=watcher.epoch,
            seeds=request.seeds,
            measure=request.measure,
        )
    pictures: list[Path] = []
    if trained.training.epochs:
        from grader.reports.plots.training_plots import write_training_plots

        threshold = trained.item.threshold if trained.item else None
        pictures = write_training_plots(trained.training, request.out, threshold=threshold)
    return TrainedHomework(trained, tuple(pictures))
