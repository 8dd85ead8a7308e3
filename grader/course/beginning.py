"""The beginning of a course, of an assignment and of a term.

A new course or assignment is something small that validates at once, written from `beginnings/`. A new
term is written into `course.toml`, and the templates are made again with the values of that term; what
has changed is told. Nothing else is touched.
"""

import json
import re
import secrets
import tomllib
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.locate import FILE, Course, require_term
from grader.course.locate import FILE as COURSE_FILE
from grader.course.student_template import handed_out_copy, student_files, student_wheel, write_template
from grader.course.toml_file import FILE as ASSIGNMENT_FILE
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, python_text
from grader.domain.errors import CourseError, UsageError
from grader.files import atomic

KINDS = ("minimal", "numpy", "text", "vision")
BEGINNINGS = Path(__file__).parent / "beginnings"
SUFFIX = ".txt"  # behind the names of files that are not the grader's own
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
        UsageError: There is something in the folder already, or it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: there is something already. Name a folder that is new or empty.")
    own = {"title": json.dumps(title), "secret": json.dumps(secrets.token_urlsafe(_SECRET_BYTES))}
    texts = {
        COURSE_FILE: _COURSE.format(**own),
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
        title: For people; empty: made of the id.

    Returns:
        What was written.

    Raises:
        UsageError: The id cannot be one, or there is such an assignment already.
    """
    if not assignment_id.isidentifier() or not assignment_id.islower() or not assignment_id.isascii():
        raise UsageError(
            f"'{assignment_id}' cannot be the id of an assignment. Use small letters, digits and '_', "
            "beginning with a letter: first_homework."
        )
    folder = course.root / "reference" / assignment_id
    if folder.exists():
        raise UsageError(f"{folder}: there is such an assignment already. Choose another id.")
    title = title or assignment_id.replace("_", " ").capitalize()
    written = []
    for path in sorted((BEGINNINGS / kind).rglob(f"*{SUFFIX}")):
        name = path.relative_to(BEGINNINGS / kind).with_suffix("")  # without SUFFIX
        target = folder / name
        if name.parts[0] == "datasets":
            target = course.datasets / f"{assignment_id}_{name.name}"
        # in TOML, the title stands within quotation marks
        shown = json.dumps(title, ensure_ascii=False)[1:-1] if name.name == ASSIGNMENT_FILE else title
        text = path.read_text(encoding="utf-8").replace("@ID@", assignment_id).replace("@TITLE@", shown)
        written.append(_written(target, text))
    return written


def _written(path: Path, text: str) -> Path:
    atomic.make_folder(path.parent)
    atomic.write(path, text.encode("utf-8"))
    return path


# --- term change -----------------------------------------------------------------------------------------


_TERM = re.compile(r"""^term[ \t]*=[ \t]*("[^"\n]*"|'[^'\n]*')(?P<rest>[ \t]*(?:#.*)?\r?)$""", re.MULTILINE)
_TITLE = re.compile(r"^title[ \t]*=.*$", re.MULTILINE)


@dataclass(frozen=True)
class AssignmentChange:
    """What a new term changes of an assignment.

    Attributes:
        differing: (name, last term's value, this term's) of what is drawn for the term and differs.
        per_student: The names of what is drawn anew for each student.
        overdue: The deadline, where it lies in the past.
        template: The students' folder that was made.
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

    What can go wrong is tried before anything is written, and the same call can be made again.

    Args:
        now: With its zone.

    Raises:
        UsageError: Values are drawn, and the secret is the one that the course was handed out with.
        CourseError: A file of the course is malformed, or the term is not a name of one.
    """
    require_term(term, "The term")
    assignments = [read_assignment(course.reference(each)) for each in course.assignments()]
    if any(assignment.variant for assignment in assignments):
        course.require_secret()
    path = course.root / FILE
    settings = _with_term(path.read_bytes().decode("utf-8"), term)
    later = replace(course, term=term)
    for assignment in assignments:
        student_files(assignment.folder, course.datasets, handed_out_copy(later, assignment.id))
    wheel = student_wheel()
    atomic.write(path, settings.encode("utf-8"))
    changes = []
    for assignment in assignments:
        template = course.root / "template" / assignment.id
        copy = handed_out_copy(later, assignment.id)
        write_template(assignment.folder, template, course.datasets, copy, wheel)
        changes.append(_changed(assignment, course, later, template, now))
    return TermChange(course.term, term, tuple(changes))


def _changed(
    assignment: Assignment, before: Course, after: Course, template: Path, now: datetime
) -> AssignmentChange:
    old, new = (course.values(assignment.id, assignment.variant) for course in (before, after))
    anew = [value.name for value in assignment.variant if value.per_student and before.term != after.term]
    return AssignmentChange(
        assignment.id,
        tuple((name, old[name], new[name]) for name in new if old[name] != new[name]),
        tuple(anew),
        assignment.deadline if assignment.deadline is not None and assignment.deadline < now else None,
        template,
    )


def _with_term(text: str, term: str) -> str:
    """`course.toml` with another term; every other line stays as it is.

    Raises:
        CourseError: The line cannot be found, or there is no place for one.
    """
    line = f"term = {python_text(term)}"
    head, table, rest = _before_tables(text)
    if _TERM.search(head):
        head = _TERM.sub(lambda found: f"{line}{found['rest']}", head, count=1)
    else:
        head = _TITLE.sub(lambda found: f"{found[0]}\n{line}", head, count=1)
    changed = head + table + rest
    try:
        whole = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        whole = {}
    if whole != {**tomllib.loads(text), "term": term}:
        raise CourseError(f"{FILE}: the term cannot be put into it by itself. Write the line: {line}")
    return changed


def _before_tables(text: str) -> tuple[str, str, str]:
    """The text above the first table, that table's line, and the rest."""
    table = re.search(r"^[ \t]*\[.*$", text, re.MULTILINE)
    if table is None:
        return text, "", ""
    return text[: table.start()], table[0], text[table.end() :]
