"""`grader history`: how a student's grade came about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import gradebook_option
from grader.domain.edit import Edit, Marked, RunChosen
from grader.domain.score import Total

if TYPE_CHECKING:
    from grader.gradebook import Gradebook, RunRecord


@dataclass(frozen=True, order=True)
class HistoryEntry:
    """A line of the history.

    Attributes:
        rank: Its place among entries of the same moment: decisions come before what follows from them.
    """

    when: datetime
    rank: int
    number: int
    what: str
    who: str
    text: str


@click.command("history")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.option("--assignment", "assignment_id", metavar="ID", help="For a gradebook that holds several.")
@gradebook_option
def command(out: Path, student: str, assignment_id: str | None, gradebook: str | None) -> None:
    """Show the history of the grade of STUDENT in the results folder OUT: runs, decisions, totals.

    \b
    Example:
      grader history results 400101204
    """
    from grader.domain.formatting import printable, stamp
    from grader.domain.score import total_sentence
    from grader.gradebook import Gradebook

    with Gradebook(out, gradebook, assignment_id=assignment_id) as book:
        _catch_up(out, book, assignment_id)
        runs, edits, totals = book.run_records(student), book.edits(student), book.totals(student)
    entries = sorted(
        [*_run_entries(runs), *_edit_entries(edits, several=len(runs) > 1), *_total_entries(totals)]
    )
    what = max(len(entry.what) for entry in entries)
    who = max(len(entry.who) for entry in entries)
    click.echo(f"{student}: {total_sentence(totals[-1]) if totals else 'no total yet'}")
    for entry in entries:
        shown = f"{stamp(entry.when)}  {entry.what:<{what}}  {entry.who:<{who}}  {entry.text}"
        click.echo(printable(shown.rstrip()))


def _catch_up(out: Path, book: "Gradebook", assignment_id: str | None) -> None:
    """Update files as other commands do, if the course is found; the history itself does not need it."""
    from grader.cli.command_options import now, print_catch_up
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.domain.errors import GraderError
    from grader.results.class_pages import OLDER, are_behind, caught_up

    assignment_ids = book.assignments()
    asked = assignment_id or (assignment_ids[0] if len(assignment_ids) == 1 else "")
    if asked not in assignment_ids or not are_behind(book, out, asked):
        return
    try:
        assignment = read_assignment(located_course(None).reference(asked))
    except GraderError:
        click.echo(f"note: {OLDER}. A command that finds the course writes them again.", err=True)
        return
    done = caught_up(assignment, book, out, now)
    if done is not None:
        print_catch_up(done)


def _run_entries(runs: "Sequence[RunRecord]") -> Iterator[HistoryEntry]:
    for number, run in enumerate(runs):
        made_of = {
            "submission": run.submission_digest[:12],
            "assignment": run.assignment_digest[:12],
            "grader": run.engine,
        }
        state = (run.status or "examined").replace("_", " ")
        text = ", ".join([state, *(f"{name} {value}" for name, value in made_of.items() if value)])
        yield HistoryEntry(run.when, 0, number, f"run {run.number}", run.who, text)


def _total_entries(totals: Sequence[Total]) -> Iterator[HistoryEntry]:
    from grader.domain.score import total_sentence

    for number, total in enumerate(totals):
        text = f"{total_sentence(total)} ({total.cause})"
        yield HistoryEntry(total.when, 2, number, "total", total.who, text)


def _edit_entries(edits: Sequence[Edit], *, several: bool) -> Iterator[HistoryEntry]:
    from grader.decisions.decision_words import decision_text

    before: dict[str, float | None] = {}
    for number, edit in enumerate(edits):
        what, text = decision_text(edit, before)
        reasons = [edit.reason if isinstance(edit, RunChosen) else edit.why]
        if isinstance(edit, Marked):
            before[edit.target] = edit.points
            reasons += [*(remark for _, remark in edit.remarks), edit.comment]
            reasons += [f"marked in {edit.sheet}"] if edit.sheet else []
        about_run = f"about run {edit.run}" if several and edit.run is not None else ""
        sentences = [
            sentence.rstrip(".") for sentence in (text, *dict.fromkeys(reasons), about_run) if sentence
        ]
        yield HistoryEntry(edit.when, 1, number, what, edit.who, ". ".join(sentences))
