"""What `[variant]` of an assignment states, and the file that tells a student's own values."""

import json
import keyword
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ConfigDict, Field

from grader.course.assignment_tables import VariantTable
from grader.course.contradictions import FILE, fault
from grader.course.editions import edition_of
from grader.course.toml_file import Table, toml_table
from grader.domain.drawn_values import DrawnValue, Scalar, Value, frozen_value
from grader.domain.errors import CourseError

VALUES_FILE = "variant.json"
_KINDS = {bool: "a truth value", int: "a number", float: "a number", str: "a text"}


def stated_values(tables: Mapping[str, VariantTable]) -> tuple[DrawnValue, ...]:
    """The values that `[variant]` states, in its order.

    Raises:
        CourseError: A name is not a Python name, or the choices are not different values of one kind.
    """
    return tuple(_stated(name, table) for name, table in tables.items())


class _VariantAlone(Table):
    """`assignment.toml`, of which the rest may still be unwritten."""

    model_config = ConfigDict(extra="ignore")

    variant: dict[str, VariantTable] = Field(default_factory=dict)


def values_stated_in(folder: Path) -> tuple[DrawnValue, ...]:
    """The values that the `assignment.toml` in a folder states, whatever else is in it.

    Raises:
        CourseError: The file is not TOML, or `[variant]` is malformed.
    """
    return stated_values(toml_table(folder / FILE, _VariantAlone, edition_of(folder)).variant)


def own_values_text(values: Mapping[str, Value], student_id: str) -> str:
    """The text of `variant.json`, by which the public checks know the values on a student's own machine.

    Args:
        student_id: Whose copy it is; empty: nobody's.
    """
    document = {"student": student_id, "values": dict(values)}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def own_values(folder: Path, stated: Sequence[DrawnValue]) -> dict[str, Value]:
    """The values that a student's folder tells.

    The grader never asks it about a submission: there the values are drawn again.

    Args:
        stated: The values that the assignment states; where it states none, there need be no file.

    Raises:
        CourseError: The file is missing or malformed.
    """
    path = folder / VALUES_FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not stated:
            return {}
        raise CourseError(
            f"{VALUES_FILE}, which tells the values of this copy, is missing in {folder}. Copy it back from "
            "the folder that the course handed out."
        ) from None
    except (OSError, UnicodeDecodeError):
        raise _misread() from None
    try:
        values = json.loads(text)["values"]
        return {str(name): _plain(value) for name, value in values.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _misread() from None


def _misread() -> CourseError:
    return CourseError(
        f"{VALUES_FILE} cannot be read. Copy it back from the folder that the course handed out."
    )


def _plain(value: object) -> Value:
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, Scalar) for part in parts):
        raise TypeError
    return frozen_value(value)


def _stated(name: str, table: VariantTable) -> DrawnValue:
    where = f"[variant.{name}]"
    if not name.isidentifier() or keyword.iskeyword(name):
        raise fault(f"{where}: '{name}' is not a Python name. Use letters, digits and '_', a letter first.")
    _require_one_kind(where, table.choices)
    choices = tuple(map(frozen_value, table.choices))
    for number, choice in enumerate(choices):
        if choice in choices[:number]:
            raise fault(f"{where}: {table.choices[number]!r} is in 'choices' twice. Write each choice once.")
    return DrawnValue(name, choices, table.per == "student")


def _require_one_kind(where: str, choices: Sequence[object]) -> None:
    """Refuse choices that are not all numbers, all texts, all truth values, or all lists of such.

    Raises:
        CourseError: They are not.
    """
    lists = [choice for choice in choices if isinstance(choice, list)]
    entries = [entry for choice in lists for entry in choice] if lists else choices
    kinds = {_KINDS.get(type(entry), "something else") for entry in entries}
    finite = all(math.isfinite(entry) for entry in entries if isinstance(entry, float))
    if "something else" in kinds or not finite:
        raise fault(
            f"{where}: 'choices' has what is neither a finite number, a text, a truth value nor a list of "
            "such. Replace it."
        )
    if len(kinds) > 1 or len(lists) not in (0, len(choices)):
        told = ["a list"] * bool(lists) if len(lists) < len(choices) else []
        told += sorted({_KINDS[type(choice)] for choice in choices if not isinstance(choice, list)})
        told = told if len(told) > 1 else sorted(kinds)
        raise fault(f"{where}: 'choices' mixes {' and '.join(told)}. Write choices of one kind.")
