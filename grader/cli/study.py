"""`grader study`: what a student's own choices are worth, in short trainings."""

from pathlib import Path

import click

from grader.cli.options import cores, device_option


@click.command("study")
@click.argument("path", metavar="SUBMISSION", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--data", required=True, help="The data set's zip or folder, or `synthetic`.")
@click.option(
    "--vary",
    default="lr,depth,heads,patch_size",
    show_default=True,
    metavar="NAMES",
    help="What to vary, one at a time; with values if you like: lr=0.001/0.003,depth.",
)
@click.option(
    "--epochs", type=click.IntRange(1), help="Of each training. Default: the student's, at most 10."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for table and plot.")
@click.option("--jobs", type=click.IntRange(1), help="Trainings at once. Default: one per processor core.")
@device_option
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
def command(
    path: Path,
    assignment_id: str,
    data: str,
    vary: str,
    epochs: int | None,
    out: Path,
    jobs: int | None,
    device: str,
    course: Path | None,
) -> None:
    """Train SUBMISSION, a student's code file, with different values.

    One value is changed at a time; everything else stays the same. The trainings are short: compare the
    accuracies with each other, not with a grade. The code runs isolated, as in `grader grade`. Writes
    OUT/study.csv and OUT/study.png.

    \b
    Examples:
      grader study 400101204_Lab8_Homework.py --assignment vit_defects --data NEU-CLS.zip --out study
      grader study homework.py --assignment vit_defects --data NEU-CLS.zip --vary depth=2/4/8 --out study
    """
    from grader.cli.study_view import StudyView
    from grader.grading.submission_study import StudyRequest, study_submission

    view = StudyView()
    request = StudyRequest(
        path=path,
        assignment_id=assignment_id,
        data=data,
        out=out,
        vary=vary,
        epochs=epochs,
        jobs=jobs or cores(),
        device=device,
        course=course,
    )
    done = study_submission(request, watch=view.progress)
    view.result(done.rows, done.files)
