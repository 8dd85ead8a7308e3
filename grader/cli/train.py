"""`grader train`: train a student's own homework as the grader will, and measure it."""

import sys
from pathlib import Path

import click

from grader.cli.options import assignment_options

STOPPED = 130  # the exit code of what Ctrl-C ended


@click.command("train")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--data",
    metavar="PATH|synthetic",
    help="The course's zip or its unpacked folder, or `synthetic`; by default the dataset.zip beside FILE.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where to train; auto takes a GPU when there is one.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    metavar="N",
    help="How many times to train, each time with a different seed; the mean counts.",
)
@click.option("--measure", metavar="ID", help="Which model, if several are measured. Default: the first.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("training"),
    show_default=True,
    metavar="FOLDER",
    help="Where the pictures go: learning curves and confusion matrix.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1),
    metavar="N",
    help="Train for N epochs instead of your own number: a short try.",
)
@click.option(
    "--estimate", is_flag=True, help="Only estimate how long each training will take on this machine."
)
@assignment_options
def command(
    file: Path | None,
    data: str | None,
    device: str,
    seeds: int,
    measure: str | None,
    out: Path,
    epochs: int | None,
    estimate: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Train your homework the way your grade will be measured.

    Your model is trained again by your own loop over epochs, with your optimizer, schedule, batch size
    and transform. It is trained on the training images of the handout's split, and measured on the other
    images. The grader does the same with a split that you do not know, so the accuracy in your grade is close
    to this one. On synthetic images you only learn that the training runs, and nothing about points. Ctrl-C
    ends it; curves and numbers of the completed epochs are kept.

    \b
    Examples:
      grader train
      grader train homework.ipynb --data ~/Downloads/dataset.zip
      grader train --data synthetic
      grader train --epochs 3
      grader train --estimate
    """
    from grader.cli.train_view import TrainView
    from grader.students.homework import HomeworkRequest, homework
    from grader.students.homework_training import (
        StoppedTraining,
        TrainRequest,
        train_homework,
        write_results,
    )

    found = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    if estimate:
        from grader.cli.train_view import show_estimates
        from grader.students.training_estimate import training_estimates

        sys.exit(0 if show_estimates(training_estimates(found, data, device=device)) else 1)
    view = TrainView(found.path, found.local.assignment)
    done = train_homework(found, TrainRequest(out, data, device, seeds, measure, epochs), watch=lambda: view)
    if isinstance(done, StoppedTraining):
        view.stopped(done)
        view.written(write_results(done, out))
        view.stop_verdict(done)
        sys.exit(STOPPED)
    view.measured(done)
    view.written(write_results(done, out))
    sys.exit(0 if view.result(done) else 1)
