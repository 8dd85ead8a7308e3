"""Reads and words `marking.toml`: rubric items with points, which markers choose within a part.

An item is a comment with points (`domain.assignment.Remark`): a marking sheet names it by the same id. Pages
change the file, so it is also written: in one form, with the comment at its beginning. It never decides who
may change it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader.course.editions import edition_text
from grader.course.toml_file import Table, listing, remedy, require_cell_id, toml_table
from grader.domain.assignment import Remark, RubricItem
from grader.domain.assignment_versions import ONE_EDITION, Edition
from grader.domain.errors import CourseError

FILE = "marking.toml"
_HEAD = "# Rubric items: what markers choose within a part, with its points. The console changes this file."
_LONGEST = 2000  # characters of a text or a note


class _ItemTable(Table):
    """`[[item]]`: a reason for points, in a sentence or a few."""

    id: Annotated[str, Field(min_length=1)]
    part: Annotated[str, Field(min_length=1)]
    points: float
    text: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    note: Annotated[str, Field(max_length=_LONGEST)] = ""
    group: Annotated[str, Field(max_length=200)] = ""


class _MarkingTable(Table):
    from_zero: list[str] = Field(default_factory=list)
    item: list[_ItemTable] = Field(default_factory=list)


@dataclass(frozen=True)
class PartItems:
    """The rubric items of an assignment.

    Attributes:
        items: In the order in which they are shown; each has points and a part.
        from_zero: The parts whose points begin at 0; all others begin at their maximum.
    """

    items: tuple[Remark, ...]
    from_zero: tuple[str, ...]


NO_MARKING_ITEMS = PartItems((), ())


def read_marking_items(
    folder: Path, rubric: Sequence[RubricItem], bank: Sequence[Remark], edition: Edition = ONE_EDITION
) -> PartItems:
    """The rubric items of an assignment; none if it has no such file.

    Args:
        folder: `reference/<id>`.
        bank: The comments without points, whose ids are taken.

    Raises:
        CourseError: The file is malformed, an id occurs twice, or a part does not exist.
    """
    if not (folder / FILE).exists():
        return NO_MARKING_ITEMS
    table = toml_table(folder / FILE, _MarkingTable, edition)
    items = [
        Remark(one.id, one.text, one.part.partition(".")[0], one.part, one.points, one.note, one.group)
        for one in table.item
    ]
    marking = PartItems(tuple(items), tuple(table.from_zero))
    require_fitting(marking, rubric, bank)
    return marking


def require_fitting(marking: PartItems, rubric: Sequence[RubricItem], bank: Sequence[Remark]) -> None:
    """Check rubric items against the assignment.

    Raises:
        CourseError: An id occurs twice or cannot stand in a sheet, or a part does not exist.
    """
    targets = [target for item in rubric for target in item.targets]
    ids_before = {remark.id for remark in bank}
    for item in marking.items:
        require_cell_id(item.id, f"{FILE}: item")
        if item.id in ids_before:
            raise CourseError(
                f"{FILE}: item '{item.id}' has the id of another item or comment. Rename one of them."
            )
        ids_before.add(item.id)
    for target in (*(item.part for item in marking.items), *marking.from_zero):
        if target not in targets:
            advice = remedy(target, targets, f"There are {listing(targets)}.")
            raise CourseError(f"{FILE}: nothing is marked as '{target}'. {advice}")


def is_written_by_hand(text: str, edition: Edition) -> bool:
    """Whether a file has lines for some editions only, which a page would lose."""
    return edition_text(text, edition, FILE) != text


def marking_text(marking: PartItems, before: str) -> str:
    """The file's text.

    Args:
        before: Its former text, of which the comment at the beginning is kept; empty: none.
    """
    head = re.match(r"(?:#[^\n]*\n)*", before)
    lines = [head[0].rstrip("\n") if head and head[0] else _HEAD]
    if marking.from_zero:
        lines += ["", f"from_zero = [{', '.join(map(_quoted, marking.from_zero))}]"]
    for item in marking.items:
        lines += ["", "[[item]]", f"id = {_quoted(item.id)}", f"part = {_quoted(item.part)}"]
        lines += [f"points = {item.points or 0.0!r}", f"text = {_quoted(item.text)}"]
        lines += [f"note = {_quoted(item.note)}"] if item.note else []
        lines += [f"group = {_quoted(item.group)}"] if item.group else []
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string: its escapes are those of JSON, and DEL has one as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
