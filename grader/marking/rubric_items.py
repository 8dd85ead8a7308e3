"""Rubric items: reusable reasons for points within a part, in `marking.toml` beside `assignment.toml`.

The file is written completely or not at all, and only by somebody who saw its current content.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from grader.course.course_files import file_text
from grader.course.marking_file import FILE, PartItems, is_written_by_hand, marking_text, read_marking_items
from grader.decisions.mark_entries import as_kept
from grader.domain.assignment import Remark
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.domain.score import rounded
from grader.files import atomic
from grader.marking.audit_log import Action
from grader.marking.desk import Desk, assignment_now
from grader.results.class_pages import writing

_TRIES = 5


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
    assignment = desk.assignment
    for _ in range(_TRIES):
        version = _version(desk)
        current = assignment_now(desk)
        if _version(desk) == version:
            break
    items = [
        MarkingItem(item.id, item.part, item.points, item.text, item.note, item.group)
        for item in current.remarks
        if item.points is not None
    ]
    known = assignment.mark_targets()
    from_zero = tuple(target for target in current.from_zero if target in known)
    return MarkingItems(tuple(items), from_zero, version)


def points_by_items(desk: Desk, target: str, item_ids: Sequence[str], adjustment: float = 0.0) -> float:
    """The points that rubric items and an adjustment give, from 0 to the part's maximum.

    The items are bounded first, then the adjustment: full points with an adjustment of -1 are one less than
    the maximum, however many items add to it.

    Raises:
        UsageError: The part has no such item.
    """
    values = {item.id: item.points for item in marking_items(desk).of(target)}
    maximum = desk.assignment.mark_targets().get(target)
    unknown = [item for item in item_ids if item not in values]
    if maximum is None or unknown:
        item = "".join(unknown[:1])
        raise UsageError(f"There is no rubric item '{item}' for '{target}'. Load the page again.")
    by_items = assignment_now(desk).points_by_remarks(target, (values[item] for item in item_ids))
    return rounded(min(max(by_items + adjustment, 0.0), maximum))


def write_items(desk: Desk, items: MarkingItems, now: datetime, *, by: str) -> MarkingItems:
    """Write all rubric items. Marks that were given stay as they are: see `rubric_changes`.

    Args:
        items: With the version that was read; an item that marks have may be removed, they keep its text.
        by: Who changes them.

    Returns:
        The items with their new version.

    Raises:
        ItemsChanged: The file is another one than that.
        CourseError: An item is wrong.
        UsageError: The file cannot be written.
    """
    folder, assignment = desk.assignment.folder, desk.assignment
    marking = PartItems(
        tuple(
            Remark(
                item.id,
                printable(item.text).strip(),
                item.target.partition(".")[0],
                item.target,
                as_kept(item.points),
                printable(item.note).strip(),
                " ".join(printable(item.group).split()),
            )
            for item in items.items
        ),
        items.from_zero,
    )
    with writing(folder):
        if _version(desk) != items.version:
            raise ItemsChanged(marking_items(desk))
        before = file_text(folder / FILE, FILE) if items.version else ""
        if is_written_by_hand(before, assignment.edition):
            raise UsageError(f"{FILE} has lines for some editions only. Change it in an editor.")
        text = marking_text(marking, before)
        _require_readable(desk, text)
        old = marking_items(desk)
        atomic.write(folder / FILE, text.encode())
        new = marking_items(desk)
    with desk.book.marking(writes=True) as records:
        records.markers.log(Action.ITEMS_CHANGED, by, now, _difference(old, new))
    return new


def _version(desk: Desk) -> str:
    """A digest of the file; empty if there is none."""
    try:
        return sha256((desk.assignment.folder / FILE).read_bytes()).hexdigest()[:16]
    except FileNotFoundError:
        return ""


def _require_readable(desk: Desk, text: str) -> None:
    """Check a text as the file will be read.

    Raises:
        CourseError: It is malformed, or does not fit the assignment.
    """
    bank = [remark for remark in assignment_now(desk).remarks if remark.points is None]
    with tempfile.TemporaryDirectory(prefix="grader-marking-") as folder:
        (Path(folder) / FILE).write_text(text, encoding="utf-8")
        read_marking_items(Path(folder), desk.assignment.rubric, bank)


def _difference(old: MarkingItems, new: MarkingItems) -> str:
    """What a change of the file did, in a few words."""
    before, after = ({item.id: item for item in items.items} for items in (old, new))
    words = [f"added {item_id}" for item_id in after if item_id not in before]
    words += [f"removed {item_id}" for item_id in before if item_id not in after]
    for item_id in before.keys() & after.keys():
        if before[item_id].points != after[item_id].points:
            words.append(f"{item_id}: {points(before[item_id].points)} -> {points(after[item_id].points)}")
        elif before[item_id] != after[item_id]:
            words.append(f"reworded {item_id}")
    return ", ".join(sorted(words)) or "another order"
