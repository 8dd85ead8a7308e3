"""The beginning of a course, and of an assignment: something small that validates at once."""

import json
import secrets
from pathlib import Path

from grader.course.contradictions import FILE as ASSIGNMENT_FILE
from grader.course.locate import FILE as COURSE_FILE
from grader.course.locate import Course
from grader.domain.errors import UsageError
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
