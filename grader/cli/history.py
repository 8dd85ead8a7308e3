"""`grader history`: how a student's grade came about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import gradebook_option
from grader.domain.edit import (
    Accepted,
    Claimed,
    Edit,
    Extended,
    InTime,
    Marked,
    OrallyChecked,
    OwnerAssigned,
    PickedForOral,
    Received,
    Released,
    Ruled,
    RunChosen,
    Waived,
)
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
    before: dict[str, float | None] = {}
    for number, edit in enumerate(edits):
        what, text = _decision_text(edit, before)
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


def _decision_text(edit: Edit, before: Mapping[str, float | None]) -> tuple[str, str]:
    """(the command that decided it, what was decided).

    Args:
        before: Item or part -> the points that it had before.
    """
    from grader.domain.formatting import stamp

    match edit:
        case Marked(target=target, points=points):
            old = before.get(target)
            change = _value_text(points) if old is None else f"{old:g} -> {_value_text(points)}"
            return "mark", f"{target}: {change}"
        case Waived(check=check, lifted=lifted):
            return (
                "waive",
                f"{check} counts again" if lifted else f"{check} counts as passed for the whole class",
            )
        case Ruled(counts=counts):
            return "rule", "the total counts all the same" if counts else "0 points"
        case Claimed(accuracy=accuracy):
            return "claim", _value_text(accuracy)
        case Received(moment=moment):
            return "received", "taken back" if moment is None else stamp(moment)
        case InTime():
            return "received", "in time"
        case Extended(deadline=deadline):
            return "extension", stamp(deadline)
        case RunChosen(number=number, run=run):
            return "count", f"run {_value_text(run if number is None else number)} counts"
        case OwnerAssigned():
            return "owner", _owner_text(edit)
        case Released(way=way, points=points):
            return "released", f"{'no grade' if points is None else _value_text(points)} by {way}"
        case PickedForOral(reasons=reasons, seed=seed):
            draw = f" (seed {seed})" if seed else ""
            return "oral", f"picked{draw}: {'; '.join(str(reason).rstrip('.') for reason in reasons)}"
        case OrallyChecked(outcome=outcome):
            return "oral", "taken back" if outcome is None else outcome.value
        case Accepted(file=file):
            return "accept", f"{file or ''} counts as the report"
    raise AssertionError(f"an edit of which nobody told the history: {type(edit).__name__}")


def _owner_text(edit: OwnerAssigned) -> str:
    if edit.by_person:
        unowned = f"it is not known whose it is: listed as {edit.listed_as}"
        return unowned if edit.held else f"it is {edit.listed_as}'s"
    return f"{'held' if edit.held else 'listed'} as {edit.listed_as}"


def _value_text(value: float | None) -> str:
    """A value that was given: points, a share, or the number of a run."""
    return "taken back" if value is None else f"{value:g}"
