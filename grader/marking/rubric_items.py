"""Rubric items: reusable reasons for points within a part, in `marking.toml` beside `assignment.toml`.

The file is written completely or not at all, and only by somebody who saw its current content.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.errors import UsageError
from grader.marking.desk import Desk


@dataclass(frozen=True)
class MarkingItem:
    """A rubric item of a part.

    Attributes:
        id: Unique in the assignment, also among the comments of comments.toml.
        target: The part that it belongs to.
        points: Added to the part's points; usually negative where a part starts with its maximum.
        text: What the student reads.
        note: What only markers read.
        group: A heading under which it is shown; empty: none.
    """

    id: str
    target: str
    points: float
    text: str
    note: str = ""
    group: str = ""


@dataclass(frozen=True)
class MarkingItems:
    """The rubric items of an assignment.

    Attributes:
        items: In the order in which they are shown.
        from_zero: The parts whose marks start with 0; all others start with their maximum.
        version: Of the file: see `write_items`.
    """

    items: tuple[MarkingItem, ...]
    from_zero: tuple[str, ...]
    version: str

    def of(self, target: str) -> tuple[MarkingItem, ...]:
        """The items of a part."""
        return tuple(item for item in self.items if item.target == target)


class ItemsChanged(UsageError):
    """Somebody else changed the file of rubric items since it was read. Nothing was written.

    Attributes:
        current: What it holds now.
    """

    def __init__(self, current: MarkingItems) -> None:
        self.current = current
        super().__init__("Somebody changed the rubric items meanwhile. Look at them and change yours again.")


def marking_items(desk: Desk) -> MarkingItems:
    """The rubric items as they stand in the file.

    Raises:
        CourseError: The file is malformed.
    """
    raise NotImplementedError


def points_by_items(desk: Desk, target: str, item_ids: Sequence[str], adjustment: float = 0.0) -> float:
    """The points that rubric items and an adjustment give, from 0 to the part's maximum.

    The items are bounded first, then the adjustment: full points with an adjustment of -1 are one less than
    the maximum, however many items add to it.

    Raises:
        UsageError: The part has no such item.
    """
    raise NotImplementedError


def write_items(desk: Desk, items: MarkingItems, *, by: str) -> MarkingItems:
    """Write all rubric items. Marks that were given stay as they are: see `rubric_changes`.

    Args:
        items: With the version that was read; an item that marks have may be removed, they keep its text.
        by: Who changes them.

    Returns:
        The items with their new version.

    Raises:
        ItemsChanged: The file is another one than that.
        UsageError: An item is wrong, or the file cannot be written.
    """
    raise NotImplementedError
