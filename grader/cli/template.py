"""`grader template`: the students' folder, made from the reference."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.course.locate import Course
    from grader.course.student_template import HandedOutCopy


@click.command("template")
@click.argument("assignment_id", metavar="ASSIGNMENT")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to write. Default: template/ASSIGNMENT of the course.",
)
@click.option("--student", metavar="ID", help="With --out: this student's own copy, with the values drawn.")
@click.option(
    "--students",
    "roster",
    type=click.Path(path_type=Path),
    metavar="CSV",
    help="With --out: one folder in it for each student on a class list.",
)
@click.option("--force", is_flag=True, help="With --out: replace a homework that contains someone's work.")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(
    assignment_id: str,
    out: Path | None,
    student: str | None,
    roster: Path | None,
    force: bool,
    course: Path | None,
) -> None:
    """Make the students' folder of ASSIGNMENT from its reference solution.

    Writes homework.py and homework.ipynb, in which stubs replace the code between the solution's marks. It
    also writes README.md, the public checks, the public part of assignment.toml, the data set files, the
    provided files, and the grader itself as a wheel. Hand out this folder and nothing else: the wheel holds
    no answers.

    If [variant] draws values, the folder has this term's. Values drawn for each student have their first
    choice there; --student or --students makes each student's own copy.

    \b
    Examples:
      grader template vit_defects
      grader template vit_defects --out ~/handout
    """
    from grader.course.locate import located_course
    from grader.course.student_template import handed_out_copy, student_files, write_template
    from grader.course.student_wheel import student_wheel

    found = located_course(course)
    reference = found.reference(assignment_id)
    copies: Mapping[Path, HandedOutCopy]
    if student is None and roster is None:
        copies = {out or found.root / "template" / assignment_id: handed_out_copy(found, assignment_id)}
    else:
        copies = dict(_own_copies(found, assignment_id, out, student, roster))
    if out is not None and not force:
        for folder, copy in copies.items():
            _require_unwritten(folder, student_files(reference, found.datasets, copy))
    wheel = student_wheel()
    for folder, copy in copies.items():
        written = write_template(reference, folder, found.datasets, copy, wheel)
        for path in [folder] if roster is not None else written:
            click.echo(path)


def _own_copies(
    course: "Course", assignment_id: str, out: Path | None, student: str | None, roster: Path | None
) -> Iterator[tuple[Path, "HandedOutCopy"]]:
    """Folder -> the copy of the student that it is made for.

    Raises:
        UsageError: The options contradict each other, or nothing is drawn for each student.
    """
    from grader.course.student_template import handed_out_copy
    from grader.files.names import sanitized
    from grader.lms.roster import read_roster

    if out is None:
        raise UsageError("Where should the students' own copies go? Say so: --out FOLDER")
    if student is not None and roster is not None:
        raise UsageError("--student is for one student and --students for a class. Give one of them.")
    if not handed_out_copy(course, assignment_id).own:
        raise UsageError(
            f"{assignment_id} draws no value for each student, so that all get the same folder. Leave out "
            f"{'--student' if student is not None else '--students'}."
        )
    course.require_secret()
    if student is not None and sanitized(student) != student:
        raise UsageError(f"--student {student}: an id has letters, digits, `-` and `_` only. Correct it.")
    ids = [student] if student is not None else list(read_roster(roster).rows.values()) if roster else []
    for student_id in ids:
        folder = out if roster is None else out / student_id
        yield folder, handed_out_copy(course, assignment_id, student_id)


def _require_unwritten(folder: Path, files: Mapping[str, str]) -> None:
    """Refuse to write over a homework that somebody has changed.

    Raises:
        UsageError: There is one.
    """
    for name in ("homework.py", "homework.ipynb"):
        path = folder / name
        if path.is_file() and path.read_bytes() != files[name].encode():
            raise UsageError(
                f"{path} is there already, and something else is written in it. Replace: --force"
            )
