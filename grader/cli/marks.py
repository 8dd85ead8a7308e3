"""`grader marks`: what people give, by spreadsheet or one by one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import Desk, book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.decisions.lowering import LoweringRow
    from grader.decisions.sheet_entries import Entry
    from grader.decisions.sheet_files import SheetRow
    from grader.domain.result import Result
    from grader.gradebook import Snapshot
    from grader.results.revision import Revision


@click.group("marks")
def command() -> None:
    """Take in what people give: marks and comments, by spreadsheet or one by one.

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
@click.option("--force", is_flag=True, help="Overwrite a sheet that is there already.")
@book_options
def export(
    out: Path,
    file: Path,
    split: int | None,
    items: tuple[str, ...],
    only_open: bool,
    named: bool,
    force: bool,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
) -> None:
    """Write the marking sheet FILE (.csv or .xlsx) for the results folder OUT.

    One row for each student and item, or part of an item, that a person marks, and for each other item that
    awaits a person; a team that handed in together has one. Beside it: the measured accuracy, the
    hyperparameters that were found in the code, and links to the student's report and to the pages of the PDF
    that was handed in. Fill in points, comment and comment_ids. The sheet names nobody unless --names asks
    for it.

    \b
    Examples:
      grader marks export results marks.xlsx
      grader marks export results marks.csv --split 3
      grader marks export results q6.csv --item q6 --open
    """
    from grader.course.toml_file import listing, remedy
    from grader.decisions.marking_sheet import marking_rows, split_rows
    from grader.decisions.sheet_files import require_sheet, write_sheet
    from grader.domain.teams import shared_by
    from grader.results.revision import results_now

    require_sheet(file)
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        known = [item.id for item in at.assignment.rubric]
        for item in items:
            if item not in known:
                advice = remedy(item, known, f"There are {listing(known)}.")
                raise UsageError(f"The rubric has no item '{item}'. {advice}")
        snapshot = at.book.snapshot()
        results = [(one.evidence, one.score) for one in results_now(at.assignment, snapshot)]
        teams = shared_by(snapshot.evidence.values())
    people = {evidence.student_id: evidence.origin.person for evidence, _ in results}
    people = {student_id: _together(student_id, teams, people) for student_id in people}
    links = {score.student_id: _link(out, score.student_id, file) for _, score in results}
    rows = marking_rows(at.assignment, results, snapshot.edits, links=links, items=items)
    rows = [row for row in rows if row.awaiting or not only_open]
    if not rows:
        raise UsageError("There is nothing to mark, so no sheet was written.")
    shares = [(file, rows)]
    if split is not None:
        names = [file.with_name(f"{file.stem}-{number}{file.suffix}") for number in range(1, split + 1)]
        shares = list(zip(names, split_rows(rows, split), strict=True))
    there = [path for path, _ in shares if path.exists()]
    if there and not force:
        raise UsageError(
            f"{there[0]} is there already, and may hold marks that were not imported. "
            "Choose another name, or overwrite it with --force."
        )
    for path, share in shares:
        write_sheet(path, share, people if named else None)
        count = sum(row.awaiting for row in share)
        click.echo(f"{path}: {len(share)} rows, {count} to be marked.")


@command.command("import")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@book_options
@lower_option
def import_(
    out: Path,
    files: tuple[Path, ...],
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Take marks and comments from the marking sheets FILE... into the results folder OUT.

    Any of the sheets that were exported, in any order, with any of their rows. Rows that nobody touched
    change nothing, nor do those that were imported before: go on in the same file. An empty cell in `points`
    leaves the mark that is there, and `none` takes it back. A row counts for the whole team. If one cell is
    wrong, all wrong cells are listed and nothing is taken; rows that would lower a grade that was released
    are left out and listed, and the exit status is 1.

    \b
    Examples:
      grader marks import results marks.xlsx --by ta1
      grader marks import results marks-1.csv marks-2.csv
    """
    from grader.decisions.sheet_files import read_sheet

    rows = [row for file in files for row in read_sheet(file)]
    taking = _Taking([], [], [])
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:

        def decide(snapshot: "Snapshot", results: "Sequence[Result]") -> Sequence[Edit]:
            from grader.decisions.sheet_entries import Reader
            from grader.domain.teams import shared_by

            teams = shared_by(snapshot.evidence.values())
            reader = Reader(at.assignment, tuple(snapshot.evidence), snapshot.edits, teams)
            entries = reader.entries(_relisted(rows, snapshot.relisted()))
            taking.left[:] = reader.left
            return _without_lowering(at, snapshot, results, entries, taking, allow_lower)

        revision = at.revised("marks import", decide=decide, allow_lower=allow_lower)
    for entry in taking.entries:
        if entry.before is not None and entry.before.value is not None:
            click.echo(f"changed: {entry} ({at.who})")
    for sentence in (*taking.left, *_without_effect(taking.entries, revision)):
        _say(sentence)
    told_revision(revision, _count(taking.entries))
    if taking.refused:
        _tell_refused(taking.refused)
        click.get_current_context().exit(1)


@command.command("set")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("item")
@click.argument("points")
@click.option("--why", required=True, help="The reason: the student reads it.")
@click.option("--alone", is_flag=True, help="Not for the others of STUDENT's team.")
@book_options
@lower_option
def set_(
    out: Path,
    student: str,
    item: str,
    points: str,
    why: str,
    alone: bool,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Give STUDENT so many POINTS for ITEM in the results folder OUT, whatever the grader found.

    ITEM is any rubric item, also one that the grader scores, or a part of one (q10.class_token). POINTS is a
    number, or `none` to take a person's mark back. It counts for the whole team that handed in together, but
    for members who have another mark of their own; --alone gives it to STUDENT only.

    \b
    Example:
      grader marks set results 400101204 training 9 --why "The time limit stopped it." --by ta1
    """
    from grader.decisions.sheet_files import SheetRow

    told = reason(why)
    comment = "" if points.lower() == "none" else told
    cells = {"student_id": student, "item": item, "points": points, "comment": comment}
    taking = _Taking([], [], [])
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:

        def decide(snapshot: "Snapshot", _: object) -> Sequence[Edit]:
            from grader.decisions.sheet_entries import Reader, edits_of
            from grader.domain.teams import shared_by

            teams = {} if alone else shared_by(snapshot.evidence.values())
            reader = Reader(at.assignment, tuple(snapshot.evidence), snapshot.edits, teams)
            taking.entries[:] = reader.entries([SheetRow("grader marks set", cells)])
            taking.left[:] = reader.left
            return edits_of(taking.entries, at.assignment, who=at.who, clock=now, why=told)

        revision = at.revised("marks set", decide=decide, allow_lower=allow_lower)
    for entry in taking.entries:
        click.echo(f"{entry} ({at.who})")
    for sentence in (*taking.left, *_without_effect(taking.entries, revision)):
        _say(sentence)
    told_revision(revision, "" if taking.entries else "That is the mark already.")


@dataclass(frozen=True)
class _Taking:
    """What becomes of rows; filled anew when somebody else adds to the book meanwhile.

    Attributes:
        left: Sentences about what stays as it is.
    """

    entries: "list[Entry]"
    left: list[str]
    refused: "list[tuple[Entry, LoweringRow]]"


def _without_lowering(
    at: Desk,
    snapshot: "Snapshot",
    results: "Sequence[Result]",
    entries: "Sequence[Entry]",
    taking: _Taking,
    allow_lower: bool,
) -> Sequence[Edit]:
    """The edits of the rows that take nothing from students that was released; the others are set apart."""
    from grader.decisions.lowering import lowering_rows
    from grader.decisions.sheet_entries import edits_of

    edits = edits_of(entries, at.assignment, who=at.who, clock=now)
    rows: dict[str, list[Edit]] = {}
    for entry, edit in zip(entries, edits, strict=True):
        rows.setdefault(entry.place, []).append(edit)
    refused = [] if allow_lower else lowering_rows(at.assignment, snapshot, results, list(rows.items()))
    first = {entry.place: entry for entry in reversed(entries)}
    taking.refused[:] = [(first[row.place], row) for row in refused]
    places = {row.place for row in refused}
    taking.entries[:] = [entry for entry in entries if entry.place not in places]
    return [edit for entry, edit in zip(entries, edits, strict=True) if entry.place not in places]


def _count(entries: "Sequence[Entry]") -> str:
    """How many marks were taken, and how many of them reach others of a team."""
    count, mates = len(entries), sum(entry.mate for entry in entries)
    others = f", {mates} of them for others of a team" if mates else ""
    return f"{count} {'mark' if count == 1 else 'marks'} taken{others}."


def _without_effect(entries: "Sequence[Entry]", revision: "Revision") -> list[str]:
    """Whose marks were taken and count for nothing, a sentence each."""
    closed = {result.score.student_id for result in revision.results if result.score.closed}
    about = dict.fromkeys(entry.student_id for entry in entries if entry.student_id in closed)
    return [
        f"{student}: by a rule the total is 0, so marks count for nothing until `grader rule --lift`."
        for student in about
    ]


def _say(sentence: str) -> None:
    from grader.domain.formatting import printable

    click.echo(printable(sentence))


def _tell_refused(refused: "Sequence[tuple[Entry, LoweringRow]]") -> None:
    """List the rows that were left out."""
    rows = "1 row was" if len(refused) == 1 else f"{len(refused)} rows were"
    click.echo(f"{rows} left out: a grade that was released would fall.")
    for entry, row in refused:
        for change in row.changes:
            _say(f"  {entry.place}, {entry.target}: {change.told}")
    click.echo("All others are taken. If these are meant, import again with --allow-lower.")


def _together(student_id: str, teams: Mapping[str, Sequence[str]], people: Mapping[str, str]) -> str:
    """The names of a student and of the others of the team."""
    others = [mate for mate in teams.get(student_id, ()) if mate != student_id]
    return ", ".join(filter(None, (people.get(one, "") for one in (student_id, *others))))


def _relisted(rows: "Sequence[SheetRow]", ids: Mapping[str, str]) -> "list[SheetRow]":
    """Rows of a sheet under the ids that submissions have now: whose they are may have been said since."""
    from grader.files.spreadsheet_cell import guarded, unguarded

    return [
        replace(row, cells={**row.cells, "student_id": guarded(ids[student_id])})
        if (student_id := unguarded(row.cells["student_id"])) in ids
        else row
        for row in rows
    ]


def _link(out: Path, student_id: str, file: Path) -> str:
    """The report's address as seen from the sheet's folder."""
    from grader.results.class_files import report_path

    report = report_path(out, student_id).resolve()
    try:
        return Path(os.path.relpath(report, file.parent.resolve())).as_posix()
    except ValueError:  # on another drive
        return report.as_posix()
