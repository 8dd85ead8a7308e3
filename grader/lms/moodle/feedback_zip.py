"""Packs the reports so that Moodle gives each student theirs (Upload multiple feedback files in a zip).

mod/assign/feedback/file/importziplib.php splits a name at its first four underscores, `<Full
name>_<participant>_assignfeedback_file_<file>`, and goes by the participant's number alone. It skips names
that begin with a dot or a tilde. Files side by side, as here, it puts where students find them; within
folders it would give them the path `//`. The names come from the teacher's grading worksheet or from the
download that was graded; none is invented. If a person decided whose a submission is, the name in the
download may be somebody else's, and is not used. Where Moodle has web services, `moodle_service` sends the
same reports instead.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from grader.domain.errors import UsageError
from grader.domain.formatting import printable
from grader.files.zip_archive import zipped
from grader.lms.export_format import ANYWAY, Choices, Export, ExportData, ExportFormat, InputFile, unsaid
from grader.lms.matching import Candidate, NumberColumn, matching
from grader.lms.moodle.grade_tables import (
    FULL_NAME,
    LMS,
    moodle_name,
    participant,
    participant_rows,
    worksheet,
)

PLUGIN = "assignfeedback_file"
FILE = "report.html"
TEAM = "team"  # a team's number is not a participant's
_LABEL = re.compile(r"^(?P<name>.+)_(?P<number>\d{1,20})$")
_UNUSABLE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')


def feedback_zip(export_data: ExportData) -> Export:
    """The reports of all students whose grade is known.

    Raises:
        UsageError: Nobody's name is known, or the file is not a worksheet.
    """
    rows: tuple[str, ...] = ()
    if export_data.file is not None:
        holders, rows = holders_of_worksheet(*export_data.file, export_data.candidates, export_data.choices)
    else:
        not_recorded = {
            candidate.student_id for candidate in export_data.candidates if not candidate.is_noted
        }
        holders = holders_of_download(file for file in export_data.account if file[1] in not_recorded)
        holders |= holders_of_results(export_data.candidates)
    grades, reports = export_data.grades, export_data.reports(tuple(export_data.grades))
    if grades and not holders:
        raise UsageError(
            "Nothing shows what Moodle calls these students. Give the grading worksheet with --into."
        )
    remarks, files, delivered = [], [], {}
    for student_id, grade in grades.items():
        if grade.points is None:
            remarks.append(f"{student_id}: is left out ({grade.reason})")
        elif student_id not in holders:
            remarks.append(f"{student_id}: is left out (nothing shows what Moodle calls this student)")
        elif student_id not in reports:
            remarks.append(f"{student_id}: is left out (there is no report; `grader regrade` writes it)")
        else:
            files.append((f"{holders[student_id]}_{PLUGIN}_{FILE}", reports[student_id]))
            delivered[student_id] = grade.points
    return Export({"feedback.zip": zipped(files)}, len(files), (*remarks, *rows), delivered)


def holders_of_worksheet(
    name: str, content: bytes, results: Iterable[Candidate], choices: Choices
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Moodle's names for the students from the teacher's grading worksheet, and remarks on other rows.

    With blind marking, or on a site in another language, the word before the number replaces the name.

    Raises:
        UsageError: It is not a worksheet, or a row fits several students.
    """
    table = worksheet(name, content)
    match = matching(table, participant_rows(table), range(len(table.header)), NumberColumn(0, LMS), results)
    if match.doubts and not choices.anyway:
        raise UsageError(
            "\n".join([*(f"{doubt}." for doubt in match.doubts.values()), "Nothing was written."])
        )
    header = [column.casefold() for column in table.header]
    name_column = header.index(FULL_NAME) if FULL_NAME in header else None
    holders = {}
    for row, student_id in match.students.items():
        word, number = participant(table, row) or ("", "")
        person = table.cell(row, name_column) if name_column is not None else ""
        holders[student_id] = f"{_clean(person or word)}_{number}"
    rows = [
        f"{name}, row {row + 1} ({table.cell(row, 0)}): {unsaid(students)}"
        for row, students in match.held.items()
    ]
    rows += [f"{name}, row {row + 1} ({table.cell(row, 0)}): has no result" for row in match.unknown]
    return holders, (*(f"{doubt}; it is left out" for doubt in match.doubts.values()), *rows)


def holders_of_results(results: Iterable[Candidate]) -> dict[str, str]:
    """Moodle's names for the students, from the download that was graded."""
    return {
        candidate.student_id: f"{_clean(candidate.origin.person)}_{candidate.origin.number}"
        for candidate in results
        if candidate.number_in(LMS)
        and candidate.origin.person.casefold() != TEAM
        and not (candidate.held or candidate.decided)
    }


def holders_of_download(files: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Moodle's names for the students, from a download that an earlier version graded.

    Args:
        files: (Path in the download, owner) of every file.
    """
    labels_by_student: dict[str, set[str]] = {}
    for path, student_id in files:
        for part in PurePosixPath(path).parts:
            handed = moodle_name(part)
            label = _LABEL.match(handed.sender_label or "") if handed else None
            if student_id and label and label["name"].casefold() != TEAM:
                labels_by_student.setdefault(student_id, set()).add(
                    f"{_clean(label['name'])}_{label['number']}"
                )
    # of two labels, nobody knows which is the student's
    return {student_id: min(labels) for student_id, labels in labels_by_student.items() if len(labels) == 1}


def _clean(name: str) -> str:
    """A name as it may begin a file name: without underscores, as Moodle itself writes it."""
    usable = _UNUSABLE.sub("", printable(name).replace("_", " "))
    return " ".join(usable.split()).lstrip(".~ ") or "Participant"


FEEDBACK_ZIP = ExportFormat(
    name="feedback-zip",
    help="""Pack the reports for Moodle to hand back.

    They are those of the results folder OUT, named so that each student gets their own. In Moodle: the
    assignment, Submissions, Upload multiple feedback files in a zip.

    \b
    Example:
      grader export feedback-zip results --into Grades-Lab8.csv
    """,
    write=feedback_zip,
    template=InputFile(
        "The grading worksheet, for the names. Default: the names in the Moodle download that was graded.",
        required=False,
    ),
    options=(ANYWAY,),
    noun="reports",
)
