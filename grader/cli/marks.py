"""`grader marks`: the marks that people give, by spreadsheet or one by one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import decision_options, print_revision, session, session_options
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.decisions.mark_entries import Entry, MarkFault
    from grader.decisions.marking import GivenMarks, LoweringRow
    from grader.results.session import SessionRequest


@click.group("marks")
def command() -> None:
    """Enter marks and comments that people give, by spreadsheet or one by one.

    \b
    Examples:
      grader marks export results marks.xlsx --split 2
      grader marks import results marks-1.xlsx --by ta1
      grader marks set results 400101204 training 9 --why "The time limit stopped it." --by ta1
    """


@command.command("export")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--split", type=click.IntRange(1), metavar="N", help="Write N files, FILE-1 to FILE-N.")
@click.option("--item", "items", multiple=True, metavar="ID", help="Only this rubric item; may be repeated.")
@click.option("--open", "only_open", is_flag=True, help="Only rows that nobody has marked.")
@click.option("--names", "named", is_flag=True, help="Also write the students' names, as the LMS has them.")
@click.option("--force", is_flag=True, help="Overwrite an existing sheet.")
@session_options
def export(
    request: "SessionRequest",
    file: Path,
    split: int | None,
    items: tuple[str, ...],
    only_open: bool,
    named: bool,
    force: bool,
) -> None:
    """Write the marking sheet FILE (.csv or .xlsx) for the results folder OUT.

    It has one row for each student and each item, or part of an item, that a person marks or that awaits a
    person. A team that handed in together has one row. Each row has the measured accuracy, the
    hyperparameters in the code, and links to the student's report and to the pages of the submitted PDF. Fill
    in points, comment and comment_ids. The sheet contains no names unless you add --names.

    \b
    Examples:
      grader marks export results marks.xlsx
      grader marks export results marks.csv --split 3
      grader marks export results q6.csv --item q6 --open
    """
    from grader.decisions.marking_sheet import SheetRequest, export_sheets
    from grader.decisions.sheet_files import require_sheet

    require_sheet(file)
    with session(request) as opened:
        sheets = export_sheets(opened, SheetRequest(file, items, split, only_open, named, overwrite=force))
    for sheet in sheets:
        click.echo(f"{sheet.path}: {sheet.rows} rows, {sheet.awaiting} to be marked.")


@command.command("import")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@decision_options
def import_(request: "SessionRequest", files: tuple[Path, ...], allow_lower: bool) -> None:
    """Take marks and comments from the marking sheets FILE... into the results folder OUT.

    You may import any of the exported sheets, in any order, with any of their rows. Rows that nobody touched,
    or that were imported before, change nothing, so you can keep working in the same file. An empty cell in
    `points` keeps the existing mark, and `none` takes it back. A row counts for the whole team. If any cell
    is wrong, all wrong cells are listed and nothing is imported. Rows that would lower a released grade are
    left out and listed, and the exit status is 1.

    \b
    Examples:
      grader marks import results marks.xlsx --by ta1
      grader marks import results marks-1.csv marks-2.csv
    """
    from grader.decisions.marking import import_marks
    from grader.decisions.sheet_files import read_sheet

    rows = [row for file in files for row in read_sheet(file)]
    with session(request) as opened:
        marks = import_marks(opened, rows, allow_lower=allow_lower)
    for entry in marks.entries:
        if entry.before is not None and entry.before.points is not None:
            click.echo(f"changed: {entry} ({request.who})")
    _tell_notes(marks)
    print_revision(marks.revision, _marks_taken(marks.entries))
    if marks.refused:
        _tell_refused(marks.refused)
        click.get_current_context().exit(1)


@command.command("set")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("item")
@click.argument("points")
@click.option("--why", required=True, help="The reason: the student reads it.")
@click.option("--alone", is_flag=True, help="Only for STUDENT, not for the rest of the team.")
@decision_options
def set_(
    request: "SessionRequest", student: str, item: str, points: str, why: str, alone: bool, allow_lower: bool
) -> None:
    """Give STUDENT POINTS for ITEM in the results folder OUT, whatever the grader found.

    ITEM is any rubric item, including one that the grader scores, or a part of one (q10.class_token). POINTS
    is a number, or `none` to take a person's mark back. It counts for the whole team that handed in together,
    except members with a separate mark. With --alone, only STUDENT gets it.

    \b
    Example:
      grader marks set results 400101204 training 9 --why "The time limit stopped it." --by ta1
    """
    from grader.decisions.mark_entries import MarkFault, MarkRefused, points_in
    from grader.decisions.marking import NewMark, set_mark

    value = points_in(points)
    if isinstance(value, MarkFault):
        raise UsageError(_fault_sentence(value))
    with session(request) as opened:
        try:
            marks = set_mark(opened, NewMark(student, item, value, why, alone=alone), allow_lower=allow_lower)
        except MarkRefused as refused:
            raise UsageError(
                "\n".join([*map(_fault_sentence, refused.faults), "Nothing was changed."])
            ) from None
    for entry in marks.entries:
        click.echo(f"{entry} ({request.who})")
    _tell_notes(marks)
    print_revision(marks.revision, "" if marks.entries else "That is already the mark.")


def _fault_sentence(fault: "MarkFault") -> str:
    """A fault, preceded by the argument or option that is wrong."""
    from grader.decisions.mark_entries import MarkField

    arguments = {MarkField.STUDENT: "STUDENT", MarkField.ITEM: "ITEM", MarkField.POINTS: "POINTS"}
    return f"{arguments.get(fault.field, '--why')}: {fault}"


def _tell_notes(marks: "GivenMarks") -> None:
    """Print which marks stay as they are, and whose marks have no effect."""
    for note in marks.notes:
        _say(str(note))
    for student in marks.without_effect:
        _say(f"{student}: by a rule the total is 0, so marks count for nothing until `grader rule --lift`.")


def _marks_taken(entries: "Sequence[Entry]") -> str:
    """How many marks were taken, and how many of them are for others of a team."""
    count, teammates = len(entries), sum(entry.mate for entry in entries)
    for_teammates = f", {teammates} of them for others of a team" if teammates else ""
    return f"{count} {'mark' if count == 1 else 'marks'} taken{for_teammates}."


def _say(sentence: str) -> None:
    from grader.domain.formatting import printable

    click.echo(printable(sentence))


def _tell_refused(refused: "Sequence[tuple[Entry, LoweringRow]]") -> None:
    """List the rows that were left out."""
    rows = "1 row was" if len(refused) == 1 else f"{len(refused)} rows were"
    click.echo(f"{rows} left out: a grade that was released would fall.")
    for entry, row in refused:
        for change in row.changes:
            _say(f"  {entry.place}, {entry.target}: {change.in_words}")
    click.echo("All others are taken. If these are meant, import again with --allow-lower.")
