"""`grader history`: how a student's grade came about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import gradebook_option
from grader.domain.edit import Edit, EditKind
from grader.domain.total import Total

if TYPE_CHECKING:
    from grader.gradebook import Gradebook, RunRecord

WORDS = {
    EditKind.NO_GRADE: ("rule", "0 points"),
    EditKind.WAIVE_MISSING: ("rule", "the total counts all the same"),
    EditKind.WAIVE: ("waive", "{target} counts as passed for the whole class"),
    EditKind.UNWAIVE: ("waive", "{target} counts again"),
    EditKind.CLAIM: ("claim", "{value}"),
    EditKind.RECEIVED: ("received", "{value}"),
    EditKind.IN_TIME: ("received", "in time"),
    EditKind.EXTENSION: ("extension", "{value}"),
    EditKind.RUN: ("count", "run {value} counts"),
    EditKind.OWNER: ("owner", "it is {target}'s"),
    EditKind.NOBODYS: ("owner", "it is not known whose it is: listed as {target}"),
    EditKind.MATCHED: ("owner", "listed as {target}"),
    EditKind.HELD: ("owner", "held as {target}"),
    EditKind.RELEASED: ("released", "{value} by {target}"),
    EditKind.ACCEPTED: ("accept", "{target} counts as the report"),
}


@dataclass(frozen=True, order=True)
class Entry:
    """A line of the history.

    Attributes:
        rank: Its place among those of the same moment: what is decided comes before what follows from it.
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
    """Tell all that happened to the grade of STUDENT in the results folder OUT: runs, decisions, totals.

    \b
    Example:
      grader history results 400101204
    """
    from grader.domain.formatting import printable, stamp
    from grader.domain.total import total_sentence
    from grader.gradebook import Gradebook

    with Gradebook(out, gradebook, assignment_id=assignment_id) as book:
        _catch_up(out, book, assignment_id)
        runs, edits, totals = book.run_records(student), book.edits(student), book.totals(student)
    entries = sorted([*_runs(runs), *_edits(edits, several=len(runs) > 1), *_totals(totals)])
    what = max(len(entry.what) for entry in entries)
    who = max(len(entry.who) for entry in entries)
    click.echo(f"{student}: {total_sentence(totals[-1]) if totals else 'no total yet'}")
    for entry in entries:
        shown = f"{stamp(entry.when)}  {entry.what:<{what}}  {entry.who:<{who}}  {entry.text}"
        click.echo(printable(shown.rstrip()))


def _catch_up(out: Path, book: "Gradebook", assignment_id: str | None) -> None:
    """As other commands do it, where the course is found: the history does without."""
    from grader.cli.book import now, told_catch_up
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.domain.errors import GraderError
    from grader.results.catching_up import OLDER, are_behind, caught_up

    known = book.assignments()
    asked = assignment_id or (known[0] if len(known) == 1 else "")
    if asked not in known or not are_behind(book, out, asked):
        return
    try:
        assignment = read_assignment(located_course(None).reference(asked))
    except GraderError:
        click.echo(f"note: {OLDER}. A command that finds the course writes them again.", err=True)
        return
    done = caught_up(assignment, book, out, now)
    if done is not None:
        told_catch_up(done)


def _runs(runs: "Sequence[RunRecord]") -> Iterator[Entry]:
    for number, run in enumerate(runs):
        made_of = {
            "submission": run.submission_digest[:12],
            "assignment": run.assignment_digest[:12],
            "grader": run.engine,
        }
        state = (run.status or "examined").replace("_", " ")
        text = ", ".join([state, *(f"{name} {value}" for name, value in made_of.items() if value)])
        yield Entry(run.when, 0, number, f"run {run.number}", run.who, text)


def _totals(totals: Sequence[Total]) -> Iterator[Entry]:
    from grader.domain.total import total_sentence

    for number, total in enumerate(totals):
        text = f"{total_sentence(total)} ({total.cause})"
        yield Entry(total.when, 2, number, "total", total.who, text)


def _edits(edits: Sequence[Edit], *, several: bool) -> Iterator[Entry]:
    before: dict[str, float | None] = {}
    for number, edit in enumerate(edits):
        value = _value(edit)
        if edit.kind is EditKind.MARK:
            old = before.get(edit.target)
            before[edit.target] = edit.value
            what, text = "mark", f"{edit.target}: {value if old is None else f'{old:g} -> {value}'}"
        else:
            what, form = WORDS[edit.kind]
            text = form.format(target=edit.target, value=value)
        chosen = () if edit.kind is EditKind.RELEASED else edit.remarks
        told = dict.fromkeys([edit.why, *(text for _, text in chosen), edit.comment])
        sheet = f"marked in {edit.sheet}" if edit.sheet else ""
        seen = f"about run {edit.run}" if several and edit.run is not None else ""
        sentences = [one.rstrip(".") for one in (text, *told, sheet, seen) if one]
        yield Entry(edit.when, 1, number, what, edit.who, ". ".join(sentences))


def _value(edit: Edit) -> str:
    """What was given: points, a share, the number of a run, or a moment."""
    from grader.domain.formatting import stamp

    if edit.kind in (EditKind.RECEIVED, EditKind.EXTENSION) and edit.value is not None:
        return stamp(edit.moment)
    if edit.kind is EditKind.RELEASED and edit.value is None:
        return "no grade"
    given = edit.run if edit.kind is EditKind.RUN and edit.value is None else edit.value
    return "taken back" if given is None else f"{given:g}"
