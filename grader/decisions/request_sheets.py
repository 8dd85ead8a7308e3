"""Regrade requests as tables: as a form lists them, and the sheet in which they are answered."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from grader.decisions.mark_entries import MarkFault, points_in
from grader.decisions.regrade_answers import NewAnswer, OpenRequest
from grader.decisions.regrade_requests import NewRequest
from grader.decisions.sheet_files import SheetRow, Value, read_sheet, write_table
from grader.domain.errors import UsageError
from grader.domain.formatting import moment_problem, printable, stamp
from grader.files.file_names import guarded, unguarded

ASKED = ("student_id", "item", "reason")  # of a table of requests; `asked` may stand beside them
FILLED = ("points", "answer")
COLUMNS = ("student_id", "item", "title", "max", "now", *FILLED, "reason", "asked", "marked_by", "comment")


def read_requests(path: Path) -> list[NewRequest]:
    """The requests of a table with the columns `student_id`, `item` and `reason`, and perhaps `asked`.

    Raises:
        UsageError: It cannot be read, a column is missing, or cells are wrong; all are listed.
    """
    origin = "`student_id,item,reason`, and if it is known `asked`"
    faults: list[str] = []
    requests = []
    for row in read_sheet(path, ASKED, origin):
        faults += _cell_faults(row, (*ASKED, "asked"))
        asked = _moment(row, faults)
        student_id, item, reason = (unguarded(row.cells[column]) for column in ASKED)
        requests.append(NewRequest(student_id, item, reason, asked, row.place))
    _require_none(faults)
    return requests


def _moment(row: SheetRow, faults: list[str]) -> datetime | None:
    """When a student asked; None where the cell is empty, or wrong, which is added to the faults."""
    text = unguarded(row.cells.get("asked", ""))
    if not text or "asked" in row.faults:
        return None
    try:
        return asked_at(text, f"{row.place}, column 'asked'")
    except UsageError as error:
        faults.append(str(error))
        return None


def asked_at(text: str, where: str) -> datetime:
    """When a student asked, as people write it.

    Args:
        where: The place of the text, with which a sentence about it begins.

    Raises:
        UsageError: It is no time, or has no zone.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is not a time. Write it as 2026-03-02T18:00+01:00.") from None
    if problem := moment_problem(moment, f"{where}: '{text}'"):
        raise UsageError(problem)
    return moment


def write_answer_sheet(path: Path, requests: Sequence[OpenRequest]) -> None:
    """Write the sheet in which requests are answered: `answer`, and `points` where they change.

    Raises:
        UsageError: The path does not end with `.csv` or `.xlsx`, or cannot be written.
    """
    write_table(path, [COLUMNS, *map(_cells, requests)], FILLED)


def _cells(request: OpenRequest) -> list[Value]:
    edit = request.edit
    values: dict[str, Value] = {
        "student_id": edit.student_id or "",
        "item": edit.target,
        "title": request.title,
        "max": request.maximum,
        "now": request.points,
        "points": None,
        "answer": "",
        "reason": edit.why,
        "asked": stamp(edit.asked),
        "marked_by": edit.marker,
        "comment": request.comment,
    }
    return [
        guarded(printable(value)) if isinstance(value := values[column], str) else value for column in COLUMNS
    ]


def read_answers(path: Path) -> list[NewAnswer]:
    """The answers of a sheet; rows without an answer and without points are left out.

    Raises:
        UsageError: It cannot be read, a column is missing, or cells are wrong; all are listed.
    """
    faults: list[str] = []
    answers = []
    needed = ("student_id", "item", *FILLED)
    for row in read_sheet(path, needed, "`grader requests export` wrote it"):
        points, answer = (unguarded(row.cells[column]) for column in FILLED)
        cell_faults = _cell_faults(row, needed)
        if not points and not answer and not cell_faults:
            continue
        faults += cell_faults
        value = points_in(points) if points else None
        if isinstance(value, MarkFault):
            faults.append(f"{row.place}, column 'points': {value}")
        elif points and value is None:
            faults.append(
                f"{row.place}, column 'points': '{points}' is no number. Leave it empty to keep them."
            )
        else:
            student_id, item = unguarded(row.cells["student_id"]), unguarded(row.cells["item"])
            answers.append(NewAnswer(student_id, item, answer, value, row.place))
    _require_none(faults)
    return answers


def _cell_faults(row: SheetRow, columns: Sequence[str]) -> list[str]:
    """What is wrong with the cells of the columns that are read; a form may have others, as of dates."""
    return [
        f"{row.place}, column '{column}': {row.faults[column]}." for column in columns if column in row.faults
    ]


def _require_none(faults: Sequence[str]) -> None:
    if faults:
        raise UsageError(_printable_lines([*faults, "Nothing was taken. Fix these cells and try again."]))


def _printable_lines(lines: Sequence[str]) -> str:
    """Lines without anything that a terminal would act on."""
    return "\n".join(map(printable, lines))
