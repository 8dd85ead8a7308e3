"""One assignment in several editions: which lines of its files belong to the one that is handed out.

`assignment.toml` says above its first table which editions there are, and which one is handed out:

    edition = ["laptop", "full"]
    editions = [["laptop", "gpu"], ["full", "core"]]

In it, in the solution, its README, the public checks, forms and mistakes, lines that belong to some
editions only stand between marks. Marks may be nested:

    # >>> ONLY gpu                  in Markdown: <!-- >>> ONLY gpu -->
    # <<< ONLY                                   <!-- <<< ONLY -->
"""

import ast
import functools
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.course.course_files import file_text
from grader.domain.assignment_versions import ONE_EDITION, Edition
from grader.domain.errors import CourseError

FILE = "assignment.toml"
_OPENING = re.compile(r"\s*(?:#|<!--) >>> ONLY(?: (?P<name>\S+))?(?: -->)?\s*$")
_CLOSING = re.compile(r"\s*(?:#|<!--) <<< ONLY(?: -->)?\s*$")
_LEFT_OUT = "# <<< ONLY"  # replaces a line of another edition, so that lines keep their numbers


def edition_of(folder: Path) -> Edition:
    """The edition that an assignment's folder hands out.

    Raises:
        CourseError: `edition` and `editions` do not fit together. Other faults of the file are left to its
            reader.
    """
    try:
        text = file_text(folder / FILE, FILE)
    except CourseError:
        return ONE_EDITION
    return stated_edition(text, FILE)


# one process reads an assignment many times
@functools.lru_cache(64)
def stated_edition(text: str, shown: str) -> Edition:
    """The edition that the text of an `assignment.toml` states.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: `edition` and `editions` do not fit together, or a mark is malformed.
    """
    head = _head(text)
    chosen, lines = head.get("edition", []), head.get("editions", [])
    if not (_are_texts(chosen) and isinstance(lines, list) and all(map(_are_texts, lines))):
        raise CourseError(
            f"{shown}: 'edition' is a list of names, and 'editions' a list of such lists. "
            'Write them as in edition = ["laptop"] and editions = [["laptop", "gpu"]].'
        )
    known = [name for line in lines for name in line]
    if len(set(known)) < len(known):
        raise CourseError(f"{shown}: a name is in 'editions' twice. Give every choice a name of its own.")
    if [len(set(line) & set(chosen)) for line in lines] != [1] * len(chosen):
        raise CourseError(
            f"{shown}: 'edition' is {_listed(chosen)}, and takes one of each list in 'editions': "
            f"{'; '.join(' or '.join(map(repr, line)) for line in lines) or 'there is none'}. Correct it."
        )
    edition = Edition(tuple(chosen), tuple(known))
    return Edition(edition.chosen, edition.all_choices, _left_out(text, edition, head, shown))


def edition_text(text: str, edition: Edition, shown: str) -> str:
    """A text as it is in an edition, with a comment in place of each mark and of each line left out.

    Lines keep their numbers; `without_left_out` removes the comments.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: A mark is malformed, or names no edition.
    """
    lines = text.split("\n")
    opened: list[tuple[int, bool]] = []  # (line, whether it is in this edition) of each enclosing mark
    for number, line in enumerate(lines, start=1):
        if mark := _OPENING.match(line):
            if mark["name"] not in edition.all_choices:
                mistake = f"'{mark['name']}', which is not an edition" if mark["name"] else "no edition"
                choices = f"are {_listed(edition.all_choices)}" if edition.all_choices else "is none"
                raise CourseError(
                    f"{shown}:{number}: the mark names {mistake}. There {choices} in 'editions' of {FILE}."
                )
            opened.append((number, mark["name"] in edition.chosen))
        elif _CLOSING.match(line):
            if not opened:
                raise CourseError(f"{shown}:{number}: '{line.strip()}' closes no mark. Remove it.")
            opened.pop()
        elif all(is_in for _, is_in in opened):
            continue
        lines[number - 1] = _LEFT_OUT
    if opened:
        raise CourseError(f"{shown}:{opened[-1][0]}: this mark is never closed. Add '{_LEFT_OUT}' below it.")
    return "\n".join(lines)


def every_edition(text: str, shown: str) -> tuple[str, ...]:
    """The text of an `assignment.toml` in each of its editions.

    Args:
        shown: The file's name, for messages.

    Raises:
        CourseError: As for `stated_edition`.
    """
    stated = stated_edition(text, shown)
    return tuple(edition_text(text, edition, shown) for edition in _editions(stated, _head(text)))


def without_left_out(text: str) -> str:
    """A text without the comments of `edition_text`; blank lines around them are not doubled."""
    if _LEFT_OUT not in text:
        return text
    kept: list[str] = []
    after_removal = False
    for line in text.split("\n"):
        if line == _LEFT_OUT:
            after_removal = True
        elif after_removal and not line.strip() and not (kept and kept[-1].strip()):
            continue
        else:
            kept.append(line)
            after_removal = False
    return "\n".join(kept).strip("\n") + "\n"


def belongs_elsewhere(path: Path, edition: Edition) -> bool:
    """Whether a file of `forms/` or `mistakes/` belongs to another edition.

    It does if it is another version of a part that this edition lacks, or if all of its lines stand between
    marks of other editions.

    Raises:
        CourseError: A mark is malformed.
    """
    if not edition.all_choices:
        return False
    try:
        text = path.read_text(encoding="utf-8-sig")
        body = ast.parse(edition_text(text, edition, f"{path.parent.name}/{path.name}")).body
    except (OSError, SyntaxError, ValueError):
        return False  # its reader reports what is wrong
    return not body or any(
        isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in edition.left_out for node in body
    )


def _head(text: str) -> Mapping[str, Any]:
    """The keys above the first table or mark; none if that is not TOML."""
    lines = itertools.takewhile(
        lambda line: (
            not (line.lstrip().startswith("[") and "=" not in line.partition("[")[0])
            and not _OPENING.match(line)
        ),
        text.split("\n"),
    )
    try:
        return tomllib.loads("\n".join(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and text for text in value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "empty"


def _editions(edition: Edition, head: Mapping[str, Any]) -> Iterator[Edition]:
    """All editions: one choice of each line of `editions`."""
    for chosen in itertools.product(*head.get("editions", [])):
        yield Edition(chosen, edition.all_choices)


def _left_out(text: str, edition: Edition, head: Mapping[str, Any], shown: str) -> frozenset[str]:
    """The components of other editions that this one lacks."""
    own_components = frozenset(_components(edition_text(text, edition, shown)))
    others = (edition_text(text, other, shown) for other in _editions(edition, head))
    return frozenset(name for other in others for name in _components(other)) - own_components


def _components(text: str) -> Iterator[str]:
    """The names of the components; none if the text is not TOML."""
    try:
        tables = tomllib.loads(text).get("component", [])
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    for table in tables if isinstance(tables, list) else []:
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            yield table["name"]
