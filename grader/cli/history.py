"""`grader history`: how a student's grade came about."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import gradebook_option
from grader.domain.edit import Edit, EditKind
from grader.domain.total import Total

if TYPE_CHECKING:
    from grader.gradebook import RunRecord

Entry = tuple[datetime, int, str, str, str]  # when, rank within a moment, what, who, text


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
    from grader.gradebook import Gradebook
    from grader.reporting.standing import total_sentence
    from grader.reporting.typesetting import printable, stamp

    with Gradebook(out, gradebook, assignment_id=assignment_id) as book:
        runs, edits, totals = book.run_records(student), book.edits(student), book.totals(student)
    entries = sorted([*_runs(runs), *_edits(edits), *_totals(totals)])
    click.echo(f"{student}: {total_sentence(totals[-1]) if totals else 'no total yet'}")
    widths = [max(len(entry[column]) for entry in entries) for column in (2, 3)]  # type: ignore[arg-type]
    for when, _, what, who, text in entries:
        shown = f"{stamp(when)}  {what:<{widths[0]}}  {who:<{widths[1]}}  {text}"
        click.echo(printable(shown.rstrip()))


def _runs(runs: "Sequence[RunRecord]") -> Iterator[Entry]:
    for run in runs:
        state = (run.status or "examined").replace("_", " ")
        text = f"{state}; submission {run.submission_digest[:12]}, assignment {run.assignment_digest[:12]}"
        yield run.when, 0, f"run {run.number}", run.who, f"{text}, grader {run.engine}"


def _totals(totals: Sequence[Total]) -> Iterator[Entry]:
    from grader.reporting.standing import total_sentence

    for total in totals:
        yield total.when, 2, "total", total.who, f"{total_sentence(total)} ({total.cause})"


def _edits(edits: Sequence[Edit]) -> Iterator[Entry]:
    before: dict[str, float | None] = {}
    words = {
        EditKind.NO_GRADE: ("rule", "a file is missing: no grade"),
        EditKind.WAIVE_MISSING: ("rule", "a file is missing: the total counts all the same"),
        EditKind.WAIVE: ("waive", "{target} counts as passed for the whole class"),
        EditKind.UNWAIVE: ("waive", "{target} counts again"),
        EditKind.CLAIM: ("claim", "{value}"),
    }
    for edit in edits:
        value = "none" if edit.value is None else f"{edit.value:g}"
        if edit.kind is EditKind.MARK:
            old = before.get(edit.target)
            before[edit.target] = edit.value
            what, text = "mark", f"{edit.target}: {'none' if old is None else f'{old:g}'} -> {value}"
        else:
            what, form = words[edit.kind]
            text = form.format(target=edit.target, value=value)
        told = [text, edit.why, *(text for _, text in edit.remarks), edit.comment]
        seen = f" (about run {edit.run})" if edit.run is not None else ""
        yield edit.when, 1, what, edit.who, ". ".join(one.rstrip(".") for one in told if one) + seen
