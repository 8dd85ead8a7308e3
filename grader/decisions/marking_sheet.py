"""Writes marking sheets for a class: the rows that people mark, split among several markers.

It makes the rows, with the evidence about each student's answer and the current marks, and splits them among
markers. It never decides how a file looks (`sheet_files` does), and it takes no marks (`marking` does).
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.course.toml_file import listing, remedy
from grader.decisions.mark_entries import Mark, MarkRow, mark_of
from grader.decisions.sheet_files import require_sheet, write_sheet
from grader.domain.analyzed_program import Claim
from grader.domain.assignment import Assignment, RubricItem, part_target
from grader.domain.edit import Edit, Marked
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import SPACE, clipped, percent, printable
from grader.domain.score import Score, ScoreLine
from grader.domain.submission_result import shared_by
from grader.files.file_names import ANSWERS_PAGE, beside
from grader.results.class_files import report_path
from grader.results.current_state import results_now
from grader.results.folder_use import SHEET, note_written
from grader.results.session import ClassSession

_LONGEST = 2000  # characters of hyperparameters


def current_marks(edits: Sequence[Edit]) -> dict[tuple[str, str], Marked]:
    """(student, item or part) -> the last mark, which may withdraw an earlier one."""
    return {(edit.student_id or "", edit.target): edit for edit in edits if isinstance(edit, Marked)}


def marking_rows(
    assignment: Assignment,
    results: Sequence[tuple[Evidence, Score]],
    edits: Sequence[Edit],
    *,
    links: Mapping[str, str],
    items: Sequence[str] = (),
) -> list[MarkRow]:
    """The rows of a class, by student, then in the rubric's order.

    There is a row for each item, or part, that a person marks, and for each other item that awaits a person.
    Students whose total a ruling decided have none. A team that handed in together has one row, under its
    first member, unless its members have different marks.

    Args:
        results: The evidence and scores of the class.
        edits: People's decisions so far, oldest first.
        links: Student -> relative address of the report.
        items: Only these rubric items; all by default.
    """
    marks = current_marks(edits)
    marks_given = Counter((edit.student_id or "", edit.target) for edit in edits if isinstance(edit, Marked))
    teams = shared_by(evidence for evidence, _ in results)
    rows: dict[tuple[str | tuple[str, ...], str, Mark], MarkRow] = {}
    for evidence, score in sorted(results, key=lambda result: result[1].student_id):
        if score.closed:
            continue
        evidence_columns, team = _evidence(assignment, evidence, score.claim), teams.get(score.student_id, ())
        report = links.get(score.student_id, "")
        team_note = f"team: {', '.join(team)}" if team else ""
        for line, item in zip(score.lines, assignment.rubric, strict=True):
            if items and item.id not in items:
                continue
            if not item.by_person and line.state != "awaiting":
                continue
            for target, title, maximum, is_decided in _targets(item, line):
                edit = marks.get((score.student_id, target))
                mark = mark_of(edit)
                key = team or score.student_id, target, mark
                if key in rows:
                    rows[key] = replace(rows[key], awaiting=rows[key].awaiting or not is_decided)
                    continue
                reason = "" if item.by_person else printable(line.reason)
                rows[key] = MarkRow(
                    student_id=score.student_id,
                    target=target,
                    title=title,
                    maximum=maximum,
                    mark=mark,
                    marked_by=edit.who if edit is not None and mark.points is not None else "",
                    evidence={**evidence_columns, "note": "; ".join(filter(None, (team_note, reason)))},
                    report=report,
                    answers=beside(report, ANSWERS_PAGE) if evidence.answers else "",
                    awaiting=not is_decided,
                    number=marks_given[score.student_id, target],
                    team=team,
                )
    return list(rows.values())


def split_rows(rows: Sequence[MarkRow], count: int) -> list[list[MarkRow]]:
    """The rows in this many shares of nearly equal size, with each student and each team in one share.

    Raises:
        UsageError: There are fewer students, or teams, than shares.
    """
    students = list(dict.fromkeys(row.team or row.student_id for row in rows))
    if count > len(students):
        raise UsageError(
            f"There are {len(students)} students to mark, too few for --split {count}. "
            "Choose a smaller number."
        )
    share = {student: index * count // len(students) for index, student in enumerate(students)}
    return [[row for row in rows if share[row.team or row.student_id] == number] for number in range(count)]


def _targets(item: RubricItem, line: ScoreLine) -> Iterator[tuple[str, str, float, bool]]:
    """(Target, title, maximum, whether it is decided) of an item, or of each of its parts."""
    if not item.parts:
        yield item.id, item.title, item.points, line.points is not None
        return
    decided = {part.id: part.points is not None for part in line.parts}
    for part in item.parts:
        yield part_target(item, part), f"{item.title}: {part.title}", part.points, decided[part.id]


def _evidence(assignment: Assignment, evidence: Evidence, claim: Claim | None) -> dict[str, str]:
    chosen = evidence.chosen if assignment.uses_chosen_values else ()
    tuned = "; ".join(f"{value.name} = {' '.join(value.value.split())}" for value in chosen)
    return {
        "claimed_accuracy": f"{_share(claim.accuracy)} ({printable(claim.source)})" if claim else "",
        "measured_accuracy": "; ".join(_measured(evidence)),
        "checkpoint_accuracy": _share(evidence.checkpoint.accuracy),
        "hyperparameters": clipped(printable(tuned), _LONGEST),
    }


def _measured(evidence: Evidence) -> Iterator[str]:
    """The measurements in words, named by their measures if there are several models."""
    for measure in (evidence.measure, *evidence.further):
        training = evidence.of_measure(measure).training
        measurement = _share(training.accuracy) if training.value is None else f"{training.value:.4g}"
        if measurement:
            yield (
                f"{measure}: {measurement}" if evidence.further or training.value is not None else measurement
            )


def _share(value: float | None) -> str:
    return "" if value is None else percent(value).replace(SPACE, " ")


# --- sheet export ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SheetRequest:
    """A request for marking sheets.

    Attributes:
        file: The path, which ends with `.csv` or `.xlsx`.
        items: Only these rubric items; all by default.
        split: How many files, FILE-1 to FILE-N; None: one, FILE.
        only_open: Whether only unmarked rows are written.
        named: Whether the students' names are included, as the LMS has them; by default the sheet is blind.
        overwrite: Whether an existing sheet is overwritten.
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
        awaiting: How many of them must still be marked.
    """

    path: Path
    rows: int
    awaiting: int


def export_sheets(session: ClassSession, request: SheetRequest) -> tuple[WrittenSheet, ...]:
    """Write marking sheets: a row for each student or team and each item or part that a person marks.

    Raises:
        UsageError: There is no such item or nothing to mark, or the file exists or cannot be written.
    """
    require_sheet(request.file)
    _require_items(session.assignment, request.items)
    snapshot = session.book.snapshot(attempts=session.assignment.compares_attempts)
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
    existing = [path for path, _ in shares if path.exists()]
    if existing and not request.overwrite:
        raise UsageError(
            f"{existing[0]} is there already, and may hold marks that were not imported. "
            "Choose another name, or overwrite it with --force."
        )
    note_written(session.book, [path for path, _ in shares], SHEET)
    for path, share in shares:
        write_sheet(path, share, names if request.named else None)
    return tuple(WrittenSheet(path, len(share), sum(row.awaiting for row in share)) for path, share in shares)


def _require_items(assignment: Assignment, items: Sequence[str]) -> None:
    item_ids = [item.id for item in assignment.rubric]
    for item in items:
        if item not in item_ids:
            advice = remedy(item, item_ids, f"There are {listing(item_ids)}.")
            raise UsageError(f"The rubric has no item '{item}'. {advice}")


def _shares(request: SheetRequest, rows: list[MarkRow]) -> list[tuple[Path, list[MarkRow]]]:
    """The files and their rows."""
    if request.split is None:
        return [(request.file, rows)]
    file, numbers = request.file, range(1, request.split + 1)
    names = [file.with_name(f"{file.stem}-{number}{file.suffix}") for number in numbers]
    return list(zip(names, split_rows(rows, request.split), strict=True))


def _together(student_id: str, teams: Mapping[str, Sequence[str]], names: Mapping[str, str]) -> str:
    """The names of a student and of the other members of the team."""
    others = [mate for mate in teams.get(student_id, ()) if mate != student_id]
    return ", ".join(filter(None, (names.get(member, "") for member in (student_id, *others))))


def _link(out: Path, student_id: str, file: Path) -> str:
    """The report's address relative to the sheet's folder."""
    report = report_path(out, student_id).resolve()
    try:
        return Path(os.path.relpath(report, file.parent.resolve())).as_posix()
    except ValueError:  # on another drive
        return report.as_posix()
