"""The commands for a student's own homework: `grader program`, `train`, `pack` and `data`.

They show how the grader understands a homework, train it as a grade is measured, put together the files to
hand in, and show or write a data set. Each command reads its options and asks `grader.students`. The views
decide how results are printed; they are imported when a command runs.
"""

import sys
from pathlib import Path

import click

from grader.cli.command_options import assignment_options


@click.command("program")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--code", is_flag=True, help="Print the statements that are executed to train.")
@click.option("--no-run", is_flag=True, help="Execute nothing: for a file that you did not write.")
@assignment_options
def program_command(
    file: Path | None,
    code: bool,
    no_run: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Show which model counts in your homework, and what trains it.

    Your training is tried on a few artificial images, which takes seconds. The output lists each loop with
    its epochs, optimizer, rates and schedule. `grader train` and the grader execute the same: your own
    statements on which the final model's weights depend, with other images in place of yours. Code that
    trains other models is not run. If the wrong model was found, save the weights that you hand in under
    their name with `torch.save`. Or write `# grader: final` at the end of the line that makes the final
    model.

    \b
    Examples:
      grader program
      grader program homework.ipynb --code
    """
    from grader.cli.homework_view import show_calls, show_program
    from grader.cli.terminal_page import Page
    from grader.students.homework import HomeworkRequest, homework
    from grader.students.own_check import tried_program, untried_plans
    from grader.students.own_machine import own_program

    work = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    if no_run:
        program = own_program(work.path, work.local.assignment)
        plans = untried_plans(program, work.local.assignment)
    else:
        program, plans = tried_program(work)
    assignment = work.local.assignment
    show_calls(Page(), assignment)
    if not plans and all(measure.call is None for measure in assignment.measures):
        click.echo("This assignment measures nothing, so nothing is trained.")
    for measure in assignment.measures:
        if measure.id in plans:
            show_program(program.read_for(measure.id), plans[measure.id], work.path, measure.title, code=code)
    sys.exit(0 if all(plan.can_be_trained for plan in plans.values()) else 1)


# --- train -----------------------------------------------------------------------------------------------


STOPPED = 130  # the exit code after Ctrl-C


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
def train_command(
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

    work = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    if estimate:
        from grader.cli.train_view import show_estimates
        from grader.students.homework_training import training_estimates

        sys.exit(0 if show_estimates(training_estimates(work, data, device=device)) else 1)
    view = TrainView(work.path, work.local.assignment)
    done = train_homework(work, TrainRequest(out, data, device, seeds, measure, epochs), watch=lambda: view)
    if isinstance(done, StoppedTraining):
        view.stopped(done)
        view.written(write_results(done, out))
        view.stop_verdict(done)
        sys.exit(STOPPED)
    view.measured(done)
    view.written(write_results(done, out))
    sys.exit(0 if view.result(done) else 1)


# --- pack ------------------------------------------------------------------------------------------------


@click.command("pack")
@click.argument("source", metavar="[FOLDER]", default=Path(), type=click.Path(path_type=Path))
@click.option(
    "--id", "student_id", metavar="STUDENT_ID", help="Your student id, which begins the files' names."
)
@click.option(
    "--id-is-right", is_flag=True, help="Pack under --id although STUDENT_ID in the code is different."
)
@click.option("--no-checks", is_flag=True, help="Skip the public checks.")
@click.option("--code", type=click.Path(path_type=Path), metavar="FILE", help="Your .py or .ipynb file.")
@click.option(
    "--checkpoint",
    "checkpoints",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Your weights, a .pth file; once for each model, if several are handed in.",
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Your report, a .pdf file.")
@click.option(
    "--file",
    "files",
    metavar="ROLE=FILE",
    multiple=True,
    help="Another file that the assignment requires, by its role: --file metrics=run3.csv.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to put them; by default `handin` in FOLDER.",
)
@click.option("--zip", "zipped", is_flag=True, help="Also make a zip of them, once all are there.")
@click.option("--force", is_flag=True, help="Replace existing files that have different content.")
@assignment_options
def pack_command(
    source: Path,
    student_id: str | None,
    id_is_right: bool,
    no_checks: bool,
    code: Path | None,
    checkpoints: tuple[Path, ...],
    report: Path | None,
    files: tuple[str, ...],
    out: Path | None,
    zipped: bool,
    force: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Put together the files to hand in, and verify them.

    Looks in FOLDER (by default this one) for your code, your weights, your report and any other required
    file. It reads the code and tests whether the weights fit its model. It copies the files that are fine,
    under the names that the assignment requires. Your own files are not changed. The output lists what is
    missing and what to do about it. Then it runs the public checks and tries the training, as `grader check`
    does; files are packed whatever these find. Without --id, your id is the STUDENT_ID in your code, or else
    the id in your files' names.

    The exit code is 0 if everything is there, fits and passes the checks; otherwise it is 1.

    \b
    Examples:
      grader pack --id 400101204
      grader pack --id 400101204 --code homework.ipynb --report "my report.pdf" --zip
    """
    from grader.cli.pack_view import is_right, show_package
    from grader.domain.errors import UsageError
    from grader.domain.submission import Role
    from grader.students.packing import HandinRequest, pack_handin

    named_files: dict[str, tuple[Path, ...]] = {Role.CHECKPOINT: checkpoints} if checkpoints else {}
    named_files |= {
        role: (path,) for role, path in ((Role.CODE, code), (Role.REPORT, report)) if path is not None
    }
    for option in files:
        role, _, name = option.partition("=")
        if not (role and name):
            raise UsageError(f"--file {option}: name a role and its file, as in --file metrics=run3.csv.")
        named_files[role] = (*named_files.get(role, ()), Path(name))
    packed = pack_handin(
        HandinRequest(
            source,
            Path.cwd(),
            student_id=student_id,
            confirmed=id_is_right,
            checked=not no_checks,
            given=named_files,
            out=out,
            zipped=zipped,
            force=force,
            folder=folder,
            assignment_id=assignment_id,
            course=course,
        )
    )
    show_package(packed, zipped=zipped)
    sys.exit(0 if packed.complete and is_right(packed) else 1)


# --- data ------------------------------------------------------------------------------------------------


@click.group("data")
def data_command() -> None:
    """Look at a data set, or write the zip that students receive.

    \b
    Examples:
      grader data preview --data dataset.zip
      grader data write synthetic --out dataset.zip
    """


@data_command.command("preview")
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
    from grader.students.homework import local_assignment
    from grader.students.own_training import image_source

    picture = _require_png(out)
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


@data_command.command("write")
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
    from grader.students.homework import local_assignment
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


def _require_png(out: Path) -> Path:
    from grader.domain.errors import UsageError

    if out.suffix.lower() != ".png":
        raise UsageError(f"--out {out}: the picture is a PNG. Give it a name that ends with .png.")
    return out
