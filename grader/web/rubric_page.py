"""The page on which heads change the rubric items of a question, and then the marks that have them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from grader.decisions.mark_entries import MarkFault, points_in
from grader.domain.errors import CourseError, UsageError
from grader.marking.rubric_changes import bring_up_to_date, marks_behind
from grader.marking.rubric_items import ItemsChanged, MarkingItem, MarkingItems, marking_items, write_items
from grader.web.marking_pages import question_of
from grader.web.visits import Visit


@dataclass(frozen=True)
class _ItemFields:
    """What the fields of an item hold, as typed.

    Attributes:
        remove: Whether the item is to be removed.
    """

    id: str = ""
    points: str = ""
    text: str = ""
    note: str = ""
    group: str = ""
    remove: bool = False


def rubric_page(visit: Visit) -> Response:
    """The items of a question, and the marks that do not follow them yet."""
    items = marking_items(visit.desk)
    return _page(visit, items, _fields_of(items.of(visit.path["target"])))


def _fields_of(items: Sequence[MarkingItem]) -> list[_ItemFields]:
    return [_ItemFields(item.id, f"{item.points:g}", item.text, item.note, item.group) for item in items]


def _page(
    visit: Visit,
    items: MarkingItems,
    shown: Sequence[_ItemFields],
    *,
    status: int = 200,
    faults: tuple[str, ...] = (),
) -> Response:
    target = visit.path["target"]
    return visit.page(
        "rubric_items.html.j2",
        status,
        question=question_of(visit, target),
        items=shown,
        known={item.id for item in items.of(target)},
        version=items.version,
        faults=faults,
        behind=marks_behind(visit.desk, visit.now(), target=target),
        changed=visit.query.text("changed"),
        left=visit.query.text("left"),
    )


def change_items(visit: Visit) -> Response:
    """Write the items as they were sent; marks stay as they are."""
    target = visit.path["target"]
    question_of(visit, target)
    current = marking_items(visit.desk)
    try:
        sent = _sent_fields(visit)
    except UsageError as error:
        return _page(visit, current, _fields_of(current.of(target)), status=422, faults=(str(error),))
    if current.version != visit.form.text("version"):
        return _changed_page(visit, ItemsChanged(current))
    try:
        new = _items(sent, target)
    except UsageError as error:
        return _page(visit, current, sent, status=422, faults=tuple(str(error).splitlines()))
    others = [item for item in current.items if item.target != target]
    changed = MarkingItems((*others, *new), current.from_zero, visit.form.text("version"))
    try:
        write_items(visit.desk, changed, visit.now(), by=visit.person)
    except ItemsChanged as error:
        return _changed_page(visit, error)
    except (CourseError, UsageError) as error:
        return _page(visit, current, sent, status=422, faults=tuple(str(error).splitlines()))
    return visit.redirect("rubric", target)


def _changed_page(visit: Visit, error: ItemsChanged) -> Response:
    """The items as somebody else changed them meanwhile."""
    shown = _fields_of(error.current.of(visit.path["target"]))
    return _page(visit, error.current, shown, status=409, faults=(str(error),))


def change_marks(visit: Visit) -> Response:
    """Give the marks that are behind the points that their items have now."""
    target = visit.path["target"]
    question_of(visit, target)
    applied = bring_up_to_date(visit.desk, visit.person, visit.now(), target=target)
    return visit.redirect(
        "rubric", target, changed=str(len(applied.changed)), left=str(len(applied.left) or "")
    )


def _sent_fields(visit: Visit) -> list[_ItemFields]:
    """The items of the form, without an empty row.

    Raises:
        UsageError: The form lacks something.
    """
    form = visit.form
    columns = [form.texts(name) for name in ("id", "points", "text", "note", "group")]
    if len({len(column) for column in columns}) != 1:
        raise UsageError("The form lacks something. Open the page again.")
    removed = form.texts("remove")
    return [
        _ItemFields(item_id, points, text, note, group, remove=item_id in removed)
        for item_id, points, text, note, group in zip(*columns, strict=True)
        if item_id.strip() or text.strip()
    ]


def _items(sent: Collection[_ItemFields], target: str) -> list[MarkingItem]:
    """The items that were sent, without those that are to be removed.

    Raises:
        UsageError: Points are not a number.
    """
    items = []
    for item in sent:
        if item.remove:
            continue
        value = points_in(item.points.strip())
        if value is None or isinstance(value, MarkFault):
            raise UsageError(f"'{item.id}': '{item.points}' is not a number of points. Write one, as -1.5.")
        text = " ".join(item.text.split())
        items.append(MarkingItem(item.id.strip(), target, value, text, item.note.strip(), item.group.strip()))
    return items
