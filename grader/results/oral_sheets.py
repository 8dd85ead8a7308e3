"""Writes the sheets of oral checks into a results folder: questions for students, notes for examiners.

`oral/questions.html` and `oral/notes.html` hold those of everybody who is still to be asked, to be printed at
once; `oral/students/<id>/` holds those of one student. Sheets of students who were asked stay there as they
were. It never picks a student, and no publication takes these files along.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.oral_check import OralCheck
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.gradebook import Gradebook
from grader.reports.oral.question_sheet import OralSheet, notes_page, oral_sheet, question_page

FOLDER = "oral"
QUESTIONS, NOTES = "questions.html", "notes.html"
MOST_EARLIER = 5  # submissions that are read again for the mistakes in them


@dataclass(frozen=True)
class WrittenSheets:
    """The sheets that were written.

    Attributes:
        folder: `oral` in the results folder.
        students: Those who are still to be asked, sorted.
        few: Student -> how many questions there are, where these are fewer than usual.
    """

    folder: Path
    students: tuple[str, ...]
    few: Mapping[str, int]


def write_oral_sheets(
    assignment: Assignment, book: Gradebook, results: Sequence[Result], out: Path
) -> WrittenSheets:
    """Write the sheets of all students who are still to be asked.

    Args:
        results: Of the whole class.
        out: The results folder.

    Raises:
        UsageError: They cannot be written, or the gradebook cannot be read.
    """
    folder = out / FOLDER
    sheets: list[OralSheet] = []
    for result in sorted(results, key=lambda result: result.score.student_id):
        check = result.score.oral
        if check is None or not check.to_be_asked:
            continue
        sheet = sheet_of(assignment, book, result, check)
        sheets.append(sheet)
        _write(folder / "students" / sheet.student_id, assignment, [sheet])
    _write(folder, assignment, sheets)
    few = {sheet.student_id: len(sheet.questions) for sheet in sheets if sheet.missing}
    return WrittenSheets(folder, tuple(sheet.student_id for sheet in sheets), few)


def sheet_of(assignment: Assignment, book: Gradebook, result: Result, check: OralCheck) -> OralSheet:
    """The sheet of one student who was picked, as the gradebook is now.

    Raises:
        UsageError: The gradebook cannot be read.
    """
    return oral_sheet(assignment, result, _earlier(book, result.evidence), check)


def _earlier(book: Gradebook, evidence: Evidence) -> tuple[Evidence, ...]:
    """The evidence about other files that the student handed in before, oldest first."""
    last_runs: dict[str, int] = {}
    for record in book.run_records(evidence.student_id):
        if record.submission_digest != evidence.submission_digest and record.status is None:
            last_runs[record.submission_digest] = record.number
    numbers = sorted(last_runs.values())[-MOST_EARLIER:]
    return tuple(book.evidence(evidence.student_id, number) for number in numbers)


def _write(folder: Path, assignment: Assignment, sheets: Sequence[OralSheet]) -> None:
    atomic.make_folder(folder)
    atomic.write(folder / QUESTIONS, question_page(assignment, sheets).encode("utf-8"))
    atomic.write(folder / NOTES, notes_page(assignment, sheets).encode("utf-8"))
