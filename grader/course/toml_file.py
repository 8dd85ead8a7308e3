"""Reads the TOML files of a course strictly, with one sentence for whatever is wrong in them.

Keys must be known and values must have their types. It holds the advice on misspelled names, and the
errors about an `assignment.toml` that contradicts itself. The reader of a certain file brings its tables
along; this module does not know what the keys mean.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from grader.course.course_files import file_text
from grader.course.editions import edition_text
from grader.domain.assignment_versions import ONE_EDITION, Edition
from grader.domain.errors import CourseError

FILE = "assignment.toml"


def fault(sentence: str) -> CourseError:
    """The error, which begins with the file's name."""
    return CourseError(f"{FILE}: {sentence}")


def require_file_name(text: str, what: str) -> None:
    """Refuse an id that could not become part of a file name.

    Raises:
        CourseError: It has other characters than letters, digits, `_` and `-`.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", text):
        raise fault(f"{what} '{text}' becomes part of file names. Use only letters, digits, '_' and '-'.")


def require_cell_id(text: str, what: str) -> None:
    """Refuse the id of a comment that could not stand in a cell of a marking sheet.

    Args:
        what: The file and what it is, e.g. `comments.toml: comment`.

    Raises:
        CourseError: It has other characters than letters, digits, `_`, `-` and `.`.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", text):
        raise CourseError(
            f"{what} '{text}' is written into a cell beside others. "
            "Use only letters, digits, '_', '-' and '.' in its id."
        )


def require_different(names: Iterable[str], what: str, advice: str) -> None:
    """Refuse a name that occurs twice.

    Raises:
        CourseError: `what` occurs twice; `advice` says what to do.
    """
    names_before: set[str] = set()
    for name in names:
        if name in names_before:
            raise fault(f"{what} '{name}' is there twice. {advice}")
        names_before.add(name)


# --- toml file -------------------------------------------------------------------------------------------


class Table(BaseModel):
    """A TOML table whose keys are all known and whose values are taken as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


T = TypeVar("T", bound=Table)

TOO_FINE = "too_many_decimals"  # the kind of error that `assignment_tables` raises
_EXPECTED = {
    TOO_FINE: "a number with at most two decimals",
    "string_type": "text in quotes",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list in square brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "datetime_type": "a date and time with its zone, as in 2026-01-31T23:59:00+03:30",
    "finite_number": "a finite number",
    "string_too_short": "some text",
    "too_short": "a list with at least one entry",
}
_TOO_LONG = {"too_long": "entries", "string_too_long": "characters"}
_KEY = "[key]"  # pydantic adds this to the place of a key that is itself wrong
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def toml_table(path: Path, shape: type[T], edition: Edition = ONE_EDITION) -> T:
    """The content of a TOML file.

    Args:
        path: The file.
        shape: The keys that it may have, with their types.
        edition: Of the lines that belong to some editions only, this one's are read.

    Returns:
        The file's content.

    Raises:
        CourseError: The file cannot be read, is not TOML, or has a key or a value that it must not have.
    """
    raw = _parsed(path, edition)
    try:
        return shape.model_validate(raw)
    except ValidationError as error:
        # a misspelled key is reported as unknown and as missing: the former is the useful message
        errors = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        raise CourseError(f"{path.name}: {_sentence(errors[0], raw, shape)}") from None


def listing(names: Sequence[str]) -> str:
    """The names as a person lists them: `'a', 'b' and 'c'`."""
    quoted = [f"'{name}'" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))


def remedy(name: str, known: Sequence[str], otherwise: str) -> str:
    """`Did you mean 'x'?` if a known name is close to the given one; otherwise another piece of advice."""
    close = get_close_matches(name, known, n=1)
    if not close:
        by_lower = {candidate.lower(): candidate for candidate in known}
        close = [by_lower[match] for match in get_close_matches(name.lower(), by_lower, n=1)]
    return f"Did you mean '{close[0]}'?" if close else otherwise


def _parsed(path: Path, edition: Edition) -> dict[str, Any]:
    if not path.exists():
        raise CourseError(f"{path} does not exist. Create it, or give another folder.")
    text = file_text(path, path.name)
    try:
        return tomllib.loads(edition_text(text, edition, path.name))
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        what, line = match.groups() if match else (str(error), None)
        raise CourseError(
            f"{path.name}:{line or len(text.splitlines())}: this is not valid TOML ({what}). "
            "Fix that line, or the end of the one before it."
        ) from None
    except RecursionError:
        raise CourseError(
            f"{path.name}: its lists or tables are nested too deeply. Write them flat."
        ) from None


def _sentence(error: ErrorDetails, raw: dict[str, Any], shape: type[Table]) -> str:
    *outer, last = error["loc"] or ("",)
    place, inner = _place(outer, raw)
    name = f"'{last}'" if isinstance(last, str) else f"entry {last + 1} of '{outer[-1]}'"
    if inner and isinstance(last, str):
        name = f"'{last}' in '{inner}'"
    value, kind = error["input"], error["type"]
    if last == _KEY:
        return f"{_place(outer[:-1], raw)[0] or outer[0]} has a key that is empty. Give it a name."
    if kind == "missing":
        return f"{place or 'the file'} lacks {name}. Add it."
    if kind == "extra_forbidden":
        known_keys = _keys(shape, outer)
        advice = remedy(str(last), known_keys, f"It knows {listing(known_keys)}.")
        return f"{place or 'the file'} has {name}, which means nothing here. {advice}"
    subject = f"{place}: {name}" if place else name
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", error.get("ctx", {}).get("expected", ""))
        advice = remedy(str(value), allowed, f"Choose {listing(allowed).replace(' and ', ' or ')}.")
        return f"{subject} is {_shown(value)}, which is not a choice. {advice}"
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        bound = error.get("ctx", {}).get(key)
        return f"{subject} is {_shown(value)} but must be {words} {bound:g}. Change it."
    if kind in _TOO_LONG:
        most = error.get("ctx", {}).get("max_length")
        return (
            f"{subject} has {len(value)} {_TOO_LONG[kind]}, and at most {most} can stand there. Shorten it."
        )
    return f"{subject} is {_shown(value)} but must be {_EXPECTED.get(kind, 'something else')}. Change it."


def _place(steps: Sequence[str | int], raw: Any) -> tuple[str, str]:
    """(The table that a person looks for, the key within it that holds the value)."""
    if not steps:
        return "", ""
    node, rest = raw[steps[0]], steps[1:]
    if isinstance(node, list) and rest and isinstance(rest[0], int):
        index, rest = rest[0], rest[1:]
        node, header = node[index], f"[[{steps[0]}]] number {index + 1}"
        if isinstance(node, Mapping):
            item_name = node.get("id", node.get("name"))
            header = f"[[{steps[0]}]] '{item_name}'" if isinstance(item_name, str) else header
    elif isinstance(node, Mapping):
        names = [steps[0]]
        while rest and isinstance(node[rest[0]], Mapping):
            node, rest = node[rest[0]], rest[1:]
            names.append(steps[len(names)])
        header = f"[{'.'.join(map(str, names))}]"
    else:
        return "", str(steps[0])
    return header, " ".join(f"number {step + 1}" if isinstance(step, int) else step for step in rest)


def _keys(shape: type[Table], steps: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that the table at this place may have."""
    current = shape
    for step in steps:
        if (
            isinstance(step, str) and step in current.model_fields
        ):  # else it is a name that an instructor chose
            current = _table_in(current.model_fields[step].annotation) or current
    return tuple(current.model_fields)


def _table_in(annotation: Any) -> type[Table] | None:
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    return next((table for argument in get_args(annotation) if (table := _table_in(argument))), None)


def _shown(value: object) -> str:
    if value in ("", []):
        return "empty"
    if isinstance(value, str):
        return f"the text '{value}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list) else str(value)
