"""`grader train`: train a student's own homework as the grader will, and measure it."""

import sys
from pathlib import Path

import click

from grader.cli.options import assignment_options


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
    help="How many times to train, each time with another seed; the mean counts.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("training"),
    show_default=True,
    metavar="FOLDER",
    help="Where the pictures go: learning curves and confusion matrix.",
)
@assignment_options
def command(
    file: Path | None,
    data: str | None,
    device: str,
    seeds: int,
    out: Path,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Train your homework the way your grade will be measured.

    Your model is trained anew, by your own loop over epochs, with your optimizer, schedule, batch size and
    transform, on the training images of the split that the handout makes, and measured on the other images.
    The grader does the same with a split that you do not know, so your grade's accuracy is near this one.

    \b
    Examples:
      grader train
      grader train homework.ipynb --data ~/Downloads/dataset.zip
      grader train --data synthetic
    """
    from grader.cli.train_view import TrainView
    from grader.students.handout import local_assignment
    from grader.students.own_machine import file_content, homework_file
    from grader.students.own_training import image_source, local_training, student_split

    path = file or homework_file(Path.cwd())
    file_content(path)
    near = (path.parent, Path.cwd())
    local = local_assignment(near, folder=folder, assignment_id=assignment_id, course=course)
    source = image_source(local, data, beside=path.parent)
    item = local.assignment.measured_item
    with TrainView(path, local.assignment) as view:
        trained = local_training(
            path,
            local,
            lambda: view.images(student_split(local, source)),
            device=device,
            read=view.read,
            report=view.epoch,
            seeds=seeds,
        )
    pictures = []
    if trained.training.epochs:
        from grader.reports.plots.training_plots import write_training_plots

        pictures = write_training_plots(trained.training, out, threshold=item.threshold if item else None)
    completed = view.result(trained, pictures)
    sys.exit(0 if completed else 1)
