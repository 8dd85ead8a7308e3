"""`grader grade`: a submission, a folder of them, or an LMS download."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import by_option, gradebook_option, lower_option, now, operator, told_catch_up
from grader.cli.options import cores, device_option
from grader.domain.errors import UsageError
from grader.domain.quoting import about_file

if TYPE_CHECKING:
    from grader.grading.grade_class import ClassResult, TakenIn
    from grader.grading.progress import Watcher
    from grader.grading.time_estimate import Workload
    from grader.results.catching_up import CatchUp


@click.command("grade")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for the results.")
@click.option(
    "--data",
    help="The data set's zip or folder, or `synthetic`. Needed if accuracy counts, unless --no-train.",
)
@click.option("--no-train", is_flag=True, help="Run the checks only; the training item is not run.")
@click.option("--jobs", type=click.IntRange(1), help="Submissions at once. Default: one per processor core.")
@device_option
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
@click.option(
    "--extensions",
    type=click.Path(path_type=Path),
    help="A CSV of single students' own deadlines: student_id, deadline.",
)
@click.option(
    "--roster",
    type=click.Path(path_type=Path),
    help="The class list, which shows who is missing: a CSV with a column student_id, or an LMS's list.",
)
@click.option(
    "--unofficial",
    is_flag=True,
    help="Accept a machine that isolates too little; every grade is stamped unofficial.",
)
@gradebook_option
@click.option(
    "--only",
    metavar="STUDENT",
    multiple=True,
    help="Only this student's submission; may be repeated. The others stay unchanged.",
)
@click.option("--force", is_flag=True, help="Also run again what has not changed.")
@by_option
@lower_option
def command(
    path: Path,
    assignment_id: str,
    out: Path,
    data: str | None,
    no_train: bool,
    jobs: int | None,
    device: str,
    course: Path | None,
    extensions: Path | None,
    roster: Path | None,
    unofficial: bool,
    gradebook: str | None,
    by: str | None,
    only: tuple[str, ...],
    force: bool,
    allow_lower: bool,
) -> None:
    """Grade PATH: a submission's file, a folder of submissions, or a zip from an LMS.

    Writes OUT/results.json, OUT/scores.csv, OUT/index.html (the class) and a report for each student. The
    gradebook, OUT/gradebook.sqlite, keeps all findings; later runs and marks are added to it.

    After an interruption, the same command resumes. A submission is examined again only if it, the
    assignment, the grader or the images have changed. If the same files earn less than was released before,
    the earlier run still counts, unless you add --allow-lower. If a later attempt earns less, a person
    decides (`grader count`).

    \b
    Examples:
      grader grade download.zip --assignment vit_defects --data NEU-CLS.zip --out results
      grader grade homework.py --assignment vit_defects --no-train --out results
    """
    from grader.course.locate import located_course
    from grader.grading.grade_class import GradeRequest, grade_class

    assignment = located_course(course).assignment(assignment_id)
    if assignment.data is None and data is not None:
        click.echo(f"note: {assignment_id} has no data set, so --data is not used.", err=True)
        data = None
    if assignment.needs_data and data is None and not no_train:
        raise UsageError(
            "Grading trains each submission, so it needs data: --data PATH (the course's zip or folder), "
            "--data synthetic (to try things out), or --no-train (checks only)."
        )
    request = GradeRequest(
        path=path,
        assignment_id=assignment_id,
        out=out,
        who=operator(by),
        data=None if no_train else data,
        jobs=jobs or cores(),
        device=device,
        course=course,
        extensions=extensions,
        roster=roster,
        gradebook=gradebook,
        only=only,
        force=force,
        unofficial=unofficial,
        allow_lower=allow_lower,
    )
    _tell(grade_class(request, clock=now, watch=_Shown()), out)


class _Shown:
    """How the grading of a class goes on, on the terminal."""

    def caught_up(self, catch_up: "CatchUp") -> None:
        """Files told of an earlier state of the gradebook."""
        told_catch_up(catch_up)

    def secret_is_public(self) -> None:
        """The course's secret is the one that it was handed out with."""
        click.echo(
            "warning: the course's secret is still the one that it was handed out with, so students could "
            "work out the seeds of their trainings. Set `secret` in course.toml or GRADER_SECRET.",
            err=True,
        )

    def taken_in(self, taken_in: "TakenIn") -> None:
        """The submissions were read from the path."""
        from grader.domain.formatting import printable

        for refused in taken_in.uploads.unmatched:
            click.echo(printable(f"set aside: {about_file(refused.name, refused.reason)}"), err=True)
        for note in taken_in.uploads.notes:
            click.echo(printable(f"note: {note}"), err=True)
        for submission in taken_in.uploads.submissions:
            if submission.held:
                upload = f"{submission.origin.upload} ({submission.student_id})"
                click.echo(printable(f"held: {upload}: {submission.held}"), err=True)
        download = taken_in.download
        click.echo(
            f"{download.matched + download.superseded + download.refused} files: {download.matched} matched, "
            f"{download.superseded} of earlier attempts, {download.refused} refused.",
            err=True,
        )

    def starting(self) -> None:
        """PyTorch and the checks are loaded."""
        click.echo("Starting (PyTorch and the checks are loaded once) ...", err=True)

    @contextlib.contextmanager
    def grading(self, workload: "Workload", *, trains: bool) -> "Iterator[Watcher]":
        """Submissions are examined."""
        from grader.cli.live import live_display

        try:
            with live_display(workload, trains=trains) as watch:
                yield watch
        except KeyboardInterrupt:
            click.echo("What is done is kept: the same command goes on from there.", err=True)
            raise


def _tell(graded: "ClassResult", out: Path) -> None:
    """What came of the run."""
    from grader.cli.class_summary import print_results
    from grader.domain.formatting import counted, printable
    from grader.reports.whole_class.set_aside import set_aside

    overview, shown = graded.overview, graded.results_of_run
    aside = set_aside(overview.download, overview.results)
    if aside.unused:
        click.echo(
            f"{counted(aside.total, 'file')} set aside: {aside.total - aside.unused} refused, "
            f"{aside.unused} matched and not used by the submission.",
            err=True,
        )
    if overview.absent is not None and overview.list_source:
        count, whole = overview.absent
        of_all = f"{count} of {whole}" if whole is not None else str(count)
        click.echo(f"{overview.list_source}: {of_all} students handed in nothing.", err=True)
    print_results(shown, overview, out, graded.seconds, graded.submissions)
    for result in shown:
        if result.score.lower:
            reason = f"{result.score.student_id}: {result.score.lower.reason}"
            click.echo(printable(f"{reason} `grader count` decides."), err=True)
