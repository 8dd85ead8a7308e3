"""Marking sheets for a class, written for so many markers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.toml_file import listing, remedy
from grader.decisions.mark_row import MarkRow
from grader.decisions.marking_sheet import marking_rows, split_rows
from grader.decisions.sheet_files import require_sheet, write_sheet
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.teams import shared_by
from grader.results.class_files import report_path
from grader.results.current_results import results_now
from grader.results.session import ClassSession


@dataclass(frozen=True)
class SheetRequest:
    """Which marking sheets are wanted.

    Attributes:
        file: Where: it ends with `.csv` or `.xlsx`.
        items: Only these rubric items; all by default.
        split: How many files, FILE-1 to FILE-N; None: one, FILE.
        only_open: Only rows that nobody has marked.
        named: Also the students' names, as the LMS has them; by default the sheet is blind.
        overwrite: A sheet that is there already is overwritten.
    """

    file: Path
    items: tuple[str, ...] = ()
    split: int | None = None
    only_open: bool = False
    named: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class WrittenSheet:
    """A sheet that was written.

    Attributes:
        rows: How many it has.
        awaiting: How many of them are still to be marked.
    """

    path: Path
    rows: int
    awaiting: int


def export_sheets(session: ClassSession, request: SheetRequest) -> tuple[WrittenSheet, ...]:
    """Write marking sheets: a row for each student, or team, and item, or part of one, that a person marks.

    Raises:
        UsageError: There is no such item, nothing to mark, or the file is there already or cannot be written.
    """
    require_sheet(request.file)
    _require_items(session.assignment, request.items)
    snapshot = session.book.snapshot()
    results = [(result.evidence, result.score) for result in results_now(session.assignment, snapshot)]
    teams = shared_by(snapshot.evidence.values())
    names = {evidence.student_id: evidence.origin.person for evidence, _ in results}
    names = {student_id: _together(student_id, teams, names) for student_id in names}
    links = {score.student_id: _link(session.out, score.student_id, request.file) for _, score in results}
    rows = marking_rows(session.assignment, results, snapshot.edits, links=links, items=request.items)
    rows = [row for row in rows if row.awaiting or not request.only_open]
    if not rows:
        raise UsageError("There is nothing to mark, so no sheet was written.")
    shares = _shares(request, rows)
    there = [path for path, _ in shares if path.exists()]
    if there and not request.overwrite:
        raise UsageError(
            f"{there[0]} is there already, and may hold marks that were not imported. "
            "Choose another name, or overwrite it with --force."
        )
    for path, share in shares:
        write_sheet(path, share, names if request.named else None)
    return tuple(WrittenSheet(path, len(share), sum(row.awaiting for row in share)) for path, share in shares)


def _require_items(assignment: Assignment, items: Sequence[str]) -> None:
    known = [item.id for item in assignment.rubric]
    for item in items:
        if item not in known:
            advice = remedy(item, known, f"There are {listing(known)}.")
            raise UsageError(f"The rubric has no item '{item}'. {advice}")


def _shares(request: SheetRequest, rows: list[MarkRow]) -> list[tuple[Path, list[MarkRow]]]:
    """The files and their rows."""
    if request.split is None:
        return [(request.file, rows)]
    file, numbers = request.file, range(1, request.split + 1)
    names = [file.with_name(f"{file.stem}-{number}{file.suffix}") for number in numbers]
    return list(zip(names, split_rows(rows, request.split), strict=True))


def _together(student_id: str, teams: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> str:
    """The names of a student and of the others of the team."""
    others = [mate for mate in teams.get(student_id, ()) if mate != student_id]
    return ", ".join(filter(None, (names.get(member, "") for member in (student_id, *others))))


def _link(out: Path, student_id: str, file: Path) -> str:
    """The report's address as seen from the sheet's folder."""
    report = report_path(out, student_id).resolve()
    try:
        return Path(os.path.relpath(report, file.parent.resolve())).as_posix()
    except ValueError:  # on another drive
        return report.as_posix()
