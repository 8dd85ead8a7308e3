"""`grader similar`: which submissions of a class have much in common, for a person to judge."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import gradebook_option, now, told_catch_up
from grader.cli.options import cores

if TYPE_CHECKING:
    from grader.results.catching_up import CatchUp

EVERY_SUBMISSION, EVERY_PAIR = 20, 2000  # between two lines of progress


@click.command("similar")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for page and table.")
@click.option(
    "--before",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An earlier class's submissions, compared with this one's.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.05, 1.0),
    help="The smallest shared part of a student's own code at which a pair is listed. Default: 0.5.",
)
@click.option("--jobs", type=click.IntRange(1), help="Files read at once. Default: one per processor core.")
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
@click.option("--unofficial", is_flag=True, help="Accept a machine that isolates too little.")
@gradebook_option
def command(
    path: Path,
    assignment_id: str,
    out: Path,
    before: Path | None,
    threshold: float | None,
    jobs: int | None,
    course: Path | None,
    unofficial: bool,
    gradebook: str | None,
) -> None:
    """Compare the submissions in PATH: a folder of submissions, or a zip from an LMS.

    It compares the students' own code (without what was handed out, whatever the names and the order), the
    checkpoints and the figures. Nothing is executed. The result is evidence for a person and changes no
    grade. Writes OUT/similarity.html, OUT/similarity.csv and OUT/similarity.json. If OUT holds the results of
    the class, the class page also lists the pairs. Students' reports do not mention it.

    \b
    Examples:
      grader similar download.zip --assignment vit_defects --out results
      grader similar download.zip --assignment vit_defects --before last_year.zip --out results
    """
    from grader.domain.formatting import counted, printable
    from grader.grading.class_comparison import ComparisonRequest, compare_class
    from grader.similarity.pairs import THRESHOLD

    request = ComparisonRequest(
        path=path,
        assignment_id=assignment_id,
        out=out,
        before=before,
        threshold=threshold or THRESHOLD,
        jobs=jobs or cores(),
        course=course,
        unofficial=unofficial,
        gradebook=gradebook,
    )
    done = compare_class(request, clock=now, watch=_Shown())
    for student, sentence in done.comparison.left_out:
        click.echo(printable(f"{student.student_id}: {sentence}"), err=True)
    click.echo(f"{counted(len(done.comparison.pairs), 'pair')} to look at: {done.page}")


class _Shown:
    """How a comparison goes on, on the terminal."""

    def taken_in(self, notes: Sequence[str], submissions: int) -> None:
        """The submissions are there."""
        from grader.domain.formatting import counted, printable

        for note in notes:
            click.echo(printable(f"note: {note}"), err=True)
        click.echo(f"Reading {counted(submissions, 'submission')} ...", err=True)

    def read(self, done: int, whole: int) -> None:
        """So many submissions were read."""
        _say_now_and_then(done, whole, "submissions read", EVERY_SUBMISSION)

    def compared(self, done: int, whole: int) -> None:
        """So many pairs were compared."""
        _say_now_and_then(done, whole, "pairs compared", EVERY_PAIR)

    def caught_up(self, catch_up: "CatchUp") -> None:
        """Files of the class told of an earlier state of the gradebook."""
        told_catch_up(catch_up)

    def rubric_changed(self) -> None:
        """The class page is not written again."""
        click.echo("note: the rubric changed since. `grader regrade` writes the class page anew.", err=True)


def _say_now_and_then(done: int, whole: int, what: str, every: int) -> None:
    if done % every == 0 or done == whole:
        click.echo(f"{done} of {whole} {what}", err=True)
