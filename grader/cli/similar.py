"""`grader similar`: which submissions of a class have much in common, for a person to judge."""

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import gradebook_option
from grader.cli.options import cores
from grader.domain.errors import UsageError
from grader.domain.quoting import about_file

if TYPE_CHECKING:
    from grader.domain.assignment import Assignment

EVERY = 20  # submissions between two lines of progress


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
    help="The share of a student's own code from which on a pair is listed. Default: 0.5.",
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

    Compared are the students' own code (without what was handed out, whatever the names and the order),
    the checkpoints and the figures. Nothing is executed. It is evidence for a person and changes no grade.
    Writes OUT/similarity.html, OUT/similarity.csv and OUT/similarity.json; where OUT holds the results of the
    class, its page lists the pairs, too. Students' reports tell nothing of it.

    \b
    Examples:
      grader similar download.zip --assignment vit_defects --out results
      grader similar download.zip --assignment vit_defects --before last_year.zip --out results
    """
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.domain.formatting import counted, printable
    from grader.files import atomic
    from grader.grading.comparison import handed_out, read_works
    from grader.grading.hosts import running_parsers
    from grader.grading.team_members import mates
    from grader.intake import Known, submissions
    from grader.parser.opening import OpenedApart
    from grader.reports.whole_class.similarity_page import similarity_page
    from grader.reports.whole_class.similarity_record import FILE, PAGE, record_text, similarity_record
    from grader.reports.whole_class.similarity_table import similarity_table
    from grader.results.owners import uploads_of
    from grader.similarity.pairs import THRESHOLD, compared

    found_course = located_course(course)
    assignment = read_assignment(found_course.reference(assignment_id))
    given, given_figures = handed_out(assignment)
    notes: list[str] = []
    listed = []
    sources = [(path, False)] + ([(before, True)] if before else [])
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch:
        hidden = tuple(
            folder.resolve() for folder in (*(source for source, _ in sources), out, Path(scratch))
        )
        with running_parsers(found_course, hidden=hidden, unofficial=unofficial) as parsers:
            for source, earlier in sources:
                own_scratch = Path(scratch) / ("before" if earlier else "now")
                own_scratch.mkdir()
                known = Known() if earlier else Known(uploads=uploads_of(out, gradebook, assignment.id))
                uploads = submissions(source, assignment, own_scratch, OpenedApart(parsers), known)
                notes += [about_file(refused.name, refused.reason) for refused in uploads.unmatched]
                notes += uploads.notes
                alone = mates(uploads.submissions)  # what a team handed in together is compared once
                listed += [(one, earlier) for one in uploads.submissions if one.student_id in alone]
            for note in notes:
                click.echo(printable(f"note: {note}"), err=True)
            click.echo(f"Reading {counted(len(listed), 'submission')} ...", err=True)
            works = read_works(
                parsers, assignment, listed, jobs=jobs or cores(), report=_told("submissions read", EVERY)
            )
    comparison = compared(
        works,
        given=given,
        given_figures=given_figures,
        threshold=threshold or THRESHOLD,
        report=_told("pairs compared", 2000),
    )
    out.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).replace(microsecond=0)
    page = similarity_page(assignment, comparison, notes=notes, generated_at=now)
    atomic.write(out / PAGE, page.encode("utf-8"))
    atomic.write(out / "similarity.csv", similarity_table(comparison).encode("utf-8"))
    record = similarity_record(assignment.id, comparison, now)
    atomic.write(out / FILE, record_text(record).encode("utf-8"))
    _tell_the_class(assignment, out, gradebook, now)
    for student, sentence in comparison.left_out:
        click.echo(printable(f"{student.student_id}: {sentence}"), err=True)
    click.echo(f"{counted(len(comparison.pairs), 'pair')} to look at: {out / PAGE}")


def _tell_the_class(assignment: "Assignment", out: Path, gradebook: str | None, now: datetime) -> None:
    """Write the class page again, where there is one that would tell the same totals as the reports."""
    from grader.cli.book import told_catch_up
    from grader.gradebook import Gradebook
    from grader.results.catching_up import caught_up
    from grader.results.revision import told_results, write_pages

    with Gradebook(out, gradebook, assignment_id=assignment.id) as book:
        if assignment.id not in book.assignments():
            return
        try:
            told_results(assignment, book.snapshot())
        except UsageError:
            click.echo(
                "note: the rubric changed since. `grader regrade` writes the class page anew.", err=True
            )
            return
        done = caught_up(assignment, book, out, lambda: now)
        if done is not None:
            told_catch_up(done)
        write_pages(assignment, book, out, now, class_anyway=True)


def _told(what: str, every: int) -> Callable[[int, int], None]:
    """A line now and then, and at the end."""

    def report(done: int, whole: int) -> None:
        if done % every == 0 or done == whole:
            click.echo(f"{done} of {whole} {what}", err=True)

    return report
