"""The commands for people who make a course: begin one, write the students' folder, try the checks.

They are `grader new-course`, `new-assignment`, `new-term`, `template` and `validate`. Each reads its
options, hands the work on, and prints what was written or found. What a course's files look like is
decided in `grader.course`; what counts as a good check is decided in `grader.validation`.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import cores
from grader.course.beginning import KINDS
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.course.locate import Course
    from grader.course.student_template import HandedOutCopy


@click.command("new-course")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--title", metavar="TEXT", help="What people read. Default: made from the folder's name.")
def new_course_command(folder: Path, title: str | None) -> None:
    """Make the FOLDER of a course, with its own secret.

    \b
    Example:
      grader new-course deep_learning --title "Deep learning, spring"
    """
    from grader.course.beginning import begin_course

    for path in begin_course(folder, title or folder.resolve().name.replace("_", " ").capitalize()):
        click.echo(path)
    click.echo("\nNext, there:")
    click.echo("  grader new-assignment first_homework --like minimal")


# --- new assignment --------------------------------------------------------------------------------------


@click.command("new-assignment")
@click.argument("assignment_id", metavar="ID")
@click.option(
    "--like",
    "kind",
    type=click.Choice(KINDS),
    default="minimal",
    show_default=True,
    help="What it is about: plain Python, numpy, tokens, or a model trained on images.",
)
@click.option("--title", metavar="TEXT", default="", help="What people read. Default: made from the id.")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def new_assignment_command(assignment_id: str, kind: str, title: str, course: Path | None) -> None:
    """Write a small assignment ID into the course: a solution, checks, mistakes and a form.

    It validates as it is. Change it piece by piece, and validate after each change.

    \b
    Examples:
      grader new-assignment first_homework
      grader new-assignment attention --like text --title "Attention by hand"
    """
    from grader.course.beginning import begin_assignment
    from grader.course.locate import located_course

    located = located_course(course)
    written = begin_assignment(located, assignment_id, kind, title)
    for path in written:
        click.echo(path.relative_to(located.root))
    measured = any(path.parent.name == "datasets" for path in written)
    click.echo("\nNext:")
    click.echo(f"  grader validate {assignment_id}{'' if not measured else '          and with --train'}")
    click.echo(f"  grader template {assignment_id}")
    data = " --data synthetic" if measured else ""
    click.echo(f"  grader grade SUBMISSIONS --assignment {assignment_id}{data} --out results")


# --- new term --------------------------------------------------------------------------------------------


@click.command("new-term")
@click.argument("term", metavar="TERM")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def new_term_command(term: str, course: Path | None) -> None:
    """Begin a TERM: write it into course.toml and make all templates again.

    The values that assignments draw by [variant] depend on the term. The output shows which of them differ
    from the last term's, and which deadlines have passed. Gradebooks and results are not touched: give the
    new class its own --out.

    \b
    Example:
      grader new-term 2026-fall
    """
    from grader.course.beginning import begin_term
    from grader.course.locate import located_course
    from grader.domain.assignment_versions import shown_value

    change = begin_term(located_course(course), term, datetime.now().astimezone())
    before = f", after {change.before}" if change.before not in ("", change.after) else ""
    click.echo(f"The course is in the term {change.after}{before}.")
    for assignment in change.assignments:
        click.echo(f"{assignment.id}: {assignment.template}")
        for name, old, new in assignment.differing:
            click.echo(f"  {name} is {shown_value(new)}; last term it was {shown_value(old)}")
        for name in assignment.per_student:
            click.echo(
                f"  {name} is drawn anew for each student: "
                f"grader template {assignment.id} --students ROSTER --out FOLDER"
            )
        if not assignment.differing and not assignment.per_student:
            click.echo("  its values are the last term's, or it draws none")
        if assignment.overdue is not None:
            click.echo(
                f"  its deadline, {assignment.overdue.isoformat(' ', 'minutes')}, is in the past: "
                f"change it in reference/{assignment.id}/assignment.toml"
            )


# --- template --------------------------------------------------------------------------------------------


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
def template_command(
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
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.course.student_template import (
        handed_out_copy,
        require_usable,
        student_files,
        student_wheel,
        write_template,
    )

    located = located_course(course)
    reference = located.reference(assignment_id)
    read_assignment(reference)
    copies: Mapping[Path, HandedOutCopy]
    if student is None and roster is None:
        copies = {out or located.root / "template" / assignment_id: handed_out_copy(located, assignment_id)}
    else:
        copies = dict(_own_copies(located, assignment_id, out, student, roster))
    for folder, copy in copies.items():
        files = student_files(reference, located.datasets, copy)
        require_usable(files, assignment_id)
        if out is not None and not force:
            _require_unwritten(folder, files)
    wheel = student_wheel()
    for folder, copy in copies.items():
        written = write_template(reference, folder, located.datasets, copy, wheel)
        for path in [folder] if roster is not None else written:
            click.echo(path)


def _own_copies(
    course: "Course", assignment_id: str, out: Path | None, student: str | None, roster: Path | None
) -> Iterator[tuple[Path, "HandedOutCopy"]]:
    """Each folder with the copy of the student for whom it is made.

    Raises:
        UsageError: The options contradict each other, or nothing is drawn for each student.
    """
    from grader.course.student_template import handed_out_copy
    from grader.files.file_names import sanitized
    from grader.lms.roster import read_roster

    if out is None:
        raise UsageError("Where should the students' own copies go? Say so: --out FOLDER")
    if student is not None and roster is not None:
        raise UsageError("--student is for one student and --students for a class. Give one of them.")
    if not handed_out_copy(course, assignment_id).per_student:
        raise UsageError(
            f"{assignment_id} draws no value for each student, so all get the same folder. Leave out "
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
    """Refuse to overwrite a homework that somebody has changed.

    Raises:
        UsageError: The folder has one.
    """
    for name in ("homework.py", "homework.ipynb"):
        path = folder / name
        if path.is_file() and path.read_bytes() != files[name].encode():
            raise UsageError(f"{path} is there already, with different content. To replace it: --force")


# --- validate --------------------------------------------------------------------------------------------


@click.command("validate")
@click.argument("assignment_id", metavar="[ASSIGNMENT]", required=False)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Versions tried at once. Default: one per processor core.",
)
@click.option(
    "--only", metavar="NAME", help="Only the versions of this name; `*` stands for anything: 'scale_*'."
)
@click.option("--thorough", is_flag=True, help="Every version meets every check: takes a few minutes.")
@click.option(
    "--pairs",
    type=click.IntRange(1),
    metavar="N",
    help="Try N pairs of mistakes of two parts instead.",
)
@click.option(
    "--odd",
    type=click.IntRange(1),
    metavar="N",
    help="Try N homeworks with a part that gives what nobody plans for instead.",
)
@click.option(
    "--all-variants",
    is_flag=True,
    help="Try each choice of each value that [variant] draws, not only this term's values.",
)
@click.option("--debug", is_flag=True, help="Show what checks raise, where, and what they print: use --only.")
@click.option(
    "--train",
    is_flag=True,
    help="Train the reference, or what --only names, and show the measured values and their points.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="With --train: how many times each is trained.",
)
@click.option(
    "--data",
    metavar="PATH|synthetic",
    default="synthetic",
    show_default=True,
    help="With --train: what it is trained and measured on.",
)
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def validate_command(
    assignment_id: str | None,
    jobs: int | None,
    only: str | None,
    thorough: bool,
    pairs: int | None,
    odd: int | None,
    all_variants: bool,
    debug: bool,
    train: bool,
    seeds: int,
    data: str,
    course: Path | None,
) -> None:
    """Try the checks of ASSIGNMENT on work whose worth is known.

    The reference solution must pass every check, and the bare template must earn nothing. Every legitimate
    form (reference/ASSIGNMENT/forms/*.py) must pass every check. Every mistake (mistakes/*.py) must fail a
    check of its own part and of no other; nine in ten must be called by their names. Without ASSIGNMENT,
    every assignment of the course is tried. If [variant] draws values, this term's are used; values drawn for
    each student have their first choice.

    If points depend on a measurement, the data sets are loaded, and a reference that is trained by a call is
    trained and measured on a few artificial examples.

    With --pairs, it tries homeworks with two of the mistakes each, such that every pair of parts is covered.
    Both mistakes must be noticed, neither may be called by another's name, and no third part may be blamed.

    With --odd, it tries homeworks in which one part gives what nobody plans for: nothing, NaN, a text, noise,
    an empty file. The checks may fail for it or ask a person, but none may break.

    With --train, the reference is trained like a submission, with several seeds. The table shows where full
    points may begin (two standard deviations from its mean) and whether the stated `reference` is right.

    The exit code is 0 if all of this holds, 1 if something has to be fixed, and 2 if it cannot be tried.

    \b
    Examples:
      grader validate vit_defects
      grader validate vit_defects --only 'scale_*'
      grader validate vit_defects --only reference --debug
      grader validate vit_defects --pairs 300
      grader validate vit_defects --odd 200
      grader validate vit_defects --train --seeds 5
    """
    if train:
        for name, given in (("--thorough", thorough), ("--pairs", pairs), ("--odd", odd), ("--debug", debug)):
            if given:
                raise click.UsageError(f"--train runs no checks, and {name} is about checks. Leave one out.")
        sys.exit(0 if _train_versions(assignment_id, only, seeds, data, course, all_variants) else 1)
    from grader.cli.validate_view import ValidateView
    from grader.validation.assignment_trial import ValidationRequest, validate

    view = ValidateView()
    request = ValidationRequest(
        assignment_id, only, jobs or cores(), thorough, course, debug, all_variants, pairs, odd
    )
    passed = validate(request, watch=view.progress, done=view.show)
    view.end()
    sys.exit(0 if passed else 1)


def _train_versions(
    assignment_id: str | None,
    only: str | None,
    seeds: int,
    data: str,
    course: Path | None,
    all_variants: bool,
) -> bool:
    """Train versions of the homework, and show what is measured; returns whether nothing is wrong."""
    from grader.cli.measured_view import MeasuredView
    from grader.validation.measured_versions import MeasuringRequest, measured_versions

    if assignment_id is None:
        raise click.UsageError("--train is about one assignment. Name it.")
    view = MeasuredView()
    request = MeasuringRequest(assignment_id, only or "reference", data, seeds, course, all_variants)
    return view.show(measured_versions(request, done=view.line))
