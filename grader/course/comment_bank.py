"""`comments.toml` beside `assignment.toml`: sentences for students that markers choose by their ids."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from grader.course.toml_file import Table, listing, remedy, toml_table
from grader.domain.assignment import Remark
from grader.domain.edition import ONE_EDITION, Edition
from grader.domain.errors import CourseError

FILE = "comments.toml"


class _CommentTable(Table):
    """`[[comment]]`: one sentence or a few."""

    id: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    item: str = ""


class _BankTable(Table):
    comment: list[_CommentTable] = Field(default_factory=list)


def remarks(folder: Path, items: Sequence[str], edition: Edition = ONE_EDITION) -> tuple[Remark, ...]:
    """The comment bank of an assignment; empty when it has none.

    Args:
        folder: `reference/<id>`.
        items: The ids of the rubric's items.
        edition: Comments may stand in some editions only.

    Raises:
        CourseError: The file is malformed, an id is there twice or an item does not exist.
    """
    if not (folder / FILE).exists():
        return ()
    found: dict[str, Remark] = {}
    for table in toml_table(folder / FILE, _BankTable, edition).comment:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", table.id):
            raise CourseError(
                f"{FILE}: comment '{table.id}' is written into a cell beside others. "
                "Use only letters, digits, '_', '-' and '.' in its id."
            )
        if table.id in found:
            raise CourseError(f"{FILE}: comment '{table.id}' is there twice. Remove or rename one.")
        if table.item and table.item not in items:
            advice = remedy(table.item, items, f"There are {listing(items)}.")
            raise CourseError(
                f"{FILE}: comment '{table.id}' is about '{table.item}', which is not a rubric item. {advice}"
            )
        found[table.id] = Remark(table.id, table.text, table.item)
    return tuple(found.values())
