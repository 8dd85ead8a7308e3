"""`grader data`: look at a data set, or write the zip that students receive."""

from pathlib import Path

import click

from grader.cli.options import assignment_options


@click.group("data")
def command() -> None:
    """Look at a data set, or write the zip that students receive.

    \b
    Examples:
      grader data preview --data dataset.zip
      grader data write synthetic --out dataset.zip
    """


@command.command("preview")
@click.option(
    "--data",
    metavar="PATH|synthetic",
    help="A zip or a folder of images, or `synthetic`; by default the dataset.zip in this folder.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("preview.png"),
    show_default=True,
    metavar="FILE",
    help="The picture to write.",
)
@assignment_options
def preview(
    data: str | None, out: Path, folder: Path | None, assignment_id: str | None, course: Path | None
) -> None:
    """Write a picture with some training images of each class.

    \b
    Examples:
      grader data preview
      grader data preview --data synthetic --out synthetic.png --assignment vit_defects
    """
    from grader.course.student_data import student_split
    from grader.domain.errors import UsageError
    from grader.reports.plots.data_preview import write_preview
    from grader.students.handout import local_assignment
    from grader.students.own_training import image_source

    picture = _png(out)
    local = local_assignment((Path.cwd(),), folder=folder, assignment_id=assignment_id, course=course)
    use = local.assignment.required_data()
    if not use.are_images:
        raise UsageError(
            f"The data of {local.assignment.id} are arrays, so there is no picture of them. "
            f"To look at them: datasets/{use.synthetic}.py"
        )
    splits = student_split(local.datasets, use, image_source(local, data, beside=Path.cwd()))
    write_preview(splits, picture)
    click.echo(
        f"{splits.name}: {len(splits.classes)} classes, {len(splits.train_labels)} training and "
        f"{len(splits.test_labels)} test images. Picture: {out}"
    )


@command.command("write")
@click.argument("data", metavar="PATH|synthetic")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("dataset.zip"),
    show_default=True,
    metavar="FILE",
    help="The zip to write.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@assignment_options
def write(
    data: str, out: Path, force: bool, folder: Path | None, assignment_id: str | None, course: Path | None
) -> None:
    """Write the images as the zip that the course hands out.

    PATH is the data set's file or folder; `synthetic` makes the images.

    \b
    Examples:
      grader data write synthetic
      grader data write synthetic --out trial.zip --assignment vit_defects
    """
    from grader.course.student_data import write_student_data
    from grader.domain.errors import UsageError
    from grader.students.handout import local_assignment
    from grader.students.own_training import image_source

    local = local_assignment((Path.cwd(),), folder=folder, assignment_id=assignment_id, course=course)
    use = local.assignment.required_data()
    if not use.are_images:
        raise UsageError(
            f"The data of {local.assignment.id} are arrays, which datasets/{use.synthetic}.py makes; "
            "there is no zip of them."
        )
    if out.exists() and not force:
        raise UsageError(f"{out} is there already. To replace it: --force")
    splits = write_student_data(local.datasets, use, image_source(local, data, beside=Path.cwd()), out)
    click.echo(
        f"{splits.name}: {len(splits.train_labels)} training and {len(splits.test_labels)} test images "
        f"in {out} ({out.stat().st_size / 1e6:.1f} MB)"
    )


def _png(out: Path) -> Path:
    from grader.domain.errors import UsageError

    if out.suffix.lower() != ".png":
        raise UsageError(f"--out {out}: the picture is a PNG. Give it a name that ends with .png.")
    return out
