"""Begins a course, an assignment or a term.

A new course or assignment is a small one that validates at once, copied from `beginnings/`. A new term is
written into `course.toml`, and the templates are made again with the values of that term; the changes are
returned. Nothing else is touched.
"""

import json
import re
import secrets
import tomllib
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.locate import FILE as COURSE_FILE
from grader.course.locate import Course, require_term
from grader.course.student_template import (
    handed_out_copy,
    require_usable,
    student_files,
    student_wheel,
    write_template,
)
from grader.course.toml_file import FILE as ASSIGNMENT_FILE
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, python_text
from grader.domain.errors import CourseError, UsageError
from grader.files import atomic

KINDS = ("minimal", "numpy", "text", "vision")
BEGINNINGS = Path(__file__).parent / "beginnings"
SUFFIX = ".txt"  # appended to the names of starting files, so that no tool takes them for the grader's code
_SECRET_BYTES = 32
_COURSE = """\
title = {title}
secret = {secret}  # of hidden data and seeds: keep it, and show it to nobody
"""
_README = """\
# {title}

`course.toml` has the course's title and its secret. `reference/` holds what only instructors see, one folder
for each assignment; `datasets/` the data; `template/` what students receive, which `grader template` makes.

```
grader new-assignment first_homework --like minimal
grader validate first_homework
```
"""
_IGNORED = "results/\n__pycache__/\n*.whl\n"


def begin_course(folder: Path, title: str) -> list[Path]:
    """Write the files of a course into a folder that is new or empty.

    Returns:
        What was written.

    Raises:
        UsageError: The folder is not empty, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: something is already there. Name a folder that is new or empty.")
    settings = {
        "title": _in_toml(title),
        "secret": json.dumps(secrets.token_urlsafe(_SECRET_BYTES)),
    }
    texts = {
        COURSE_FILE: _COURSE.format(**settings),
        "README.md": _README.format(title=title),
        ".gitignore": _IGNORED,
    }
    for name in ("reference", "datasets"):
        atomic.make_folder(folder / name)
    return [_written(folder / name, text) for name, text in texts.items()]


def begin_assignment(course: Course, assignment_id: str, kind: str, title: str = "") -> list[Path]:
    """Write the files of a small assignment into a course.

    Args:
        kind: One of KINDS.
        title: For people; empty: derived from the id.

    Returns:
        What was written.

    Raises:
        UsageError: The id is not allowed, such an assignment already exists, or the running grader was
            installed from the students' wheel, which has no files to begin with.
    """
    if not assignment_id.isidentifier() or not assignment_id.islower() or not assignment_id.isascii():
        raise UsageError(
            f"'{assignment_id}' cannot be the id of an assignment. Use small letters, digits and '_', "
            "beginning with a letter: first_homework."
        )
    folder = course.root / "reference" / assignment_id
    if folder.exists():
        raise UsageError(f"{folder}: this assignment exists already. Choose another id.")
    beginning = sorted((BEGINNINGS / kind).rglob(f"*{SUFFIX}"))
    if not beginning:
        raise UsageError(
            "This grader was installed from the wheel that students get, which has no files to begin an "
            "assignment with. Install the grader from its repository: `make setup` there, or `python -m pip "
            "install --force-reinstall --no-deps REPOSITORY`, with its folder."
        )
    title = title or assignment_id.replace("_", " ").capitalize()
    written = []
    for path in beginning:
        name = path.relative_to(BEGINNINGS / kind).with_suffix("")  # without SUFFIX
        target = folder / name
        if name.parts[0] == "datasets":
            target = course.datasets / f"{assignment_id}_{name.name}"
        # in TOML, the title is within quotation marks
        title_in_file = _in_toml(title)[1:-1] if name.name == ASSIGNMENT_FILE else title
        text = (
            path.read_text(encoding="utf-8").replace("@ID@", assignment_id).replace("@TITLE@", title_in_file)
        )
        written.append(_written(target, text))
    return written


def _in_toml(text: str) -> str:
    """A text between quotation marks, as TOML reads it.

    JSON would escape some letters as two halves, which TOML does not know, and leaves one character as it is
    that TOML does not take.
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _written(path: Path, text: str) -> Path:
    atomic.make_folder(path.parent)
    atomic.write(path, text.encode("utf-8"))
    return path


# --- term change -----------------------------------------------------------------------------------------


_TERM = re.compile(r"""^term[ \t]*=[ \t]*("[^"\n]*"|'[^'\n]*')(?P<rest>[ \t]*(?:#.*)?\r?)$""", re.MULTILINE)
_TITLE = re.compile(r"^title[ \t]*=.*$", re.MULTILINE)


@dataclass(frozen=True)
class AssignmentChange:
    """What a new term changes about an assignment.

    Attributes:
        differing: (name, last term's value, this term's) of the values that differ, among those that
            `[variant]` draws for a term.
        per_student: The names of the values that are drawn again for each student.
        overdue: The deadline, if it is in the past.
        template: The students' folder, which was made again.
    """

    id: str
    differing: tuple[tuple[str, Value, Value], ...]
    per_student: tuple[str, ...]
    overdue: datetime | None
    template: Path


@dataclass(frozen=True)
class TermChange:
    """What a new term changes.

    Attributes:
        before, after: The terms; empty: `course.toml` named none.
    """

    before: str
    after: str
    assignments: tuple[AssignmentChange, ...]


def begin_term(course: Course, term: str, now: datetime) -> TermChange:
    """Write the term into `course.toml` and make all templates again; nothing else is touched.

    Whatever can fail is tried before anything is written, and the same call can be repeated.

    Args:
        now: With its zone.

    Raises:
        UsageError: Values are drawn by `[variant]`, and `course.toml` still has the example's public secret.
        CourseError: A file of the course is malformed, or the term is not a valid name.
    """
    require_term(term, "The term")
    assignments = [read_assignment(course.reference(assignment_id)) for assignment_id in course.assignments()]
    if any(assignment.variant for assignment in assignments):
        course.require_secret()
    path = course.root / COURSE_FILE
    settings = _with_term(path.read_bytes().decode("utf-8-sig"), term)
    later = replace(course, term=term)
    for assignment in assignments:  # a trial, whose files are not kept: an error must come before any change
        files = student_files(assignment.folder, course.datasets, handed_out_copy(later, assignment.id))
        require_usable(files, assignment.id)
    wheel = student_wheel()
    atomic.write(path, settings.encode("utf-8"))
    changes = []
    for assignment in assignments:
        template = course.root / "template" / assignment.id
        copy = handed_out_copy(later, assignment.id)
        write_template(assignment.folder, template, course.datasets, copy, wheel)
        changes.append(_assignment_change(assignment, course, later, template, now))
    return TermChange(course.term, term, tuple(changes))


def _assignment_change(
    assignment: Assignment, before: Course, after: Course, template: Path, now: datetime
) -> AssignmentChange:
    values_before, values_after = (
        course.values(assignment.id, assignment.variant) for course in (before, after)
    )
    drawn_again = [
        value.name for value in assignment.variant if value.per_student and before.term != after.term
    ]
    return AssignmentChange(
        assignment.id,
        tuple(
            (name, values_before[name], values_after[name])
            for name in values_after
            if values_before[name] != values_after[name]
        ),
        tuple(drawn_again),
        assignment.deadline if assignment.deadline is not None and assignment.deadline < now else None,
        template,
    )


def _with_term(text: str, term: str) -> str:
    """`course.toml` with another term; every other line stays as it is.

    Raises:
        CourseError: The line can neither be replaced nor inserted.
    """
    line = f"term = {python_text(term)}"
    head, table, rest = _before_tables(text)
    if _TERM.search(head):
        head = _TERM.sub(lambda match: f"{line}{match['rest']}", head, count=1)
    else:
        head = _TITLE.sub(lambda match: f"{match[0]}\n{line}", head, count=1)
    changed = head + table + rest
    try:
        table_after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        table_after = {}
    if table_after != {**tomllib.loads(text), "term": term}:
        raise CourseError(f"{COURSE_FILE}: the term cannot be put into it by itself. Write the line: {line}")
    return changed


def _before_tables(text: str) -> tuple[str, str, str]:
    """The text above the first table, that table's line, and the rest."""
    table = re.search(r"^[ \t]*\[.*$", text, re.MULTILINE)
    if table is None:
        return text, "", ""
    return text[: table.start()], table[0], text[table.end() :]
