"""`grader accept`: a file that was set aside counts as the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.domain.submission import Role

if TYPE_CHECKING:
    from grader.domain.evidence import Evidence
    from grader.gradebook import Snapshot

NONE = "none"


@click.command("accept")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("file", metavar="FILE")
@click.option("--why", required=True, help="The reason: the student reads it.")
@book_options
@lower_option
def command(
    out: Path,
    student_id: str,
    file: str,
    why: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Accept FILE, which was set aside, as the report of STUDENT in the results folder OUT.

    FILE is its name as the class page and the report tell it (`report.docx`); `none` takes back what was
    accepted. The report is not missing then; people mark it as any other. It counts while the submission that
    counts has that file.

    \b
    Examples:
      grader accept results 400101215 400101215_Lab8_Homework.docx --why "Word is fine this once."
      grader accept results 400101215 none --why "It is another course's report."
    """
    told = reason(why)
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        at.require_student(student_id)

        def decide(snapshot: "Snapshot", _: object) -> Sequence[Edit]:
            target = ""
            if file != NONE:
                target = _accepted(at.assignment, snapshot.evidence[student_id], file)
            return [Edit(EditKind.ACCEPTED, at.who, now(), told, student_id, target)]

        revision = at.revised(f"accept {student_id}", decide=decide, allow_lower=allow_lower)
    done = f"{file} counts as the report of {student_id}."
    if file == NONE:
        done = f"No file that was set aside counts as the report of {student_id}."
    told_revision(revision, done)


def _accepted(assignment: Assignment, evidence: "Evidence", file: str) -> str:
    """The name of the file that is meant.

    Raises:
        UsageError: It cannot be the report.
    """
    whose = f"'{evidence.student_id}'"
    if not any(one.role is Role.REPORT for one in assignment.files):
        raise UsageError(f"{assignment.id} asks for no report, so there is nothing to accept.")
    if Role.REPORT not in evidence.missing:
        raise UsageError(f"{whose} has a report already, or was graded without one: nothing is missing.")
    names = list(dict.fromkeys(one.name for one in evidence.refused_files))
    if file not in names:
        there = f"There is {', '.join(names)}." if names else "Nothing of theirs was set aside."
        raise UsageError(f"No file '{file}' of {whose} was set aside. {there}")
    suffix = Path(file).suffix.lower()
    other = next(
        (one.role for one in assignment.files if suffix in one.suffixes and one.role is not Role.REPORT), None
    )
    if other is not None:
        raise UsageError(f"{file} is no report: {suffix} is what the {other.value} is handed in as.")
    return file
