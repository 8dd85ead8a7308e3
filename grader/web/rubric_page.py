"""The page on which heads change the rubric items of a question, and then the marks that have them."""

from starlette.responses import Response

from grader.decisions.mark_entries import MarkFault, points_in
from grader.domain.errors import CourseError, UsageError
from grader.marking.rubric_changes import bring_up_to_date, marks_behind
from grader.marking.rubric_items import ItemsChanged, MarkingItem, MarkingItems, marking_items, write_items
from grader.web.marking_pages import question_of
from grader.web.visits import Visit


def rubric_page(visit: Visit) -> Response:
    """The items of a question, and the marks that do not follow them yet."""
    items = marking_items(visit.desk)
    return _page(visit, items, items.of(visit.path["target"]))


def _page(
    visit: Visit,
    items: MarkingItems,
    shown: tuple[MarkingItem, ...],
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
        new = _sent_items(visit, target)
    except UsageError as error:
        return _page(visit, current, current.of(target), status=422, faults=tuple(str(error).splitlines()))
    others = [item for item in current.items if item.target != target]
    changed = MarkingItems((*others, *new), current.from_zero, visit.form.text("version"))
    try:
        write_items(visit.desk, changed, visit.now(), by=visit.person)
    except ItemsChanged as error:
        return _page(visit, error.current, error.current.of(target), status=409, faults=(str(error),))
    except (CourseError, UsageError) as error:
        return _page(visit, current, tuple(new), status=422, faults=tuple(str(error).splitlines()))
    return visit.redirect("rubric", target)


def change_marks(visit: Visit) -> Response:
    """Give the marks that are behind the points that their items have now."""
    target = visit.path["target"]
    question_of(visit, target)
    applied = bring_up_to_date(visit.desk, visit.person, visit.now(), target=target)
    return visit.redirect(
        "rubric", target, changed=str(len(applied.changed)), left=str(len(applied.left) or "")
    )


def _sent_items(visit: Visit, target: str) -> list[MarkingItem]:
    """The items of the form, without those that are to be removed and the empty row.

    Raises:
        UsageError: Points are not a number.
    """
    form = visit.form
    columns = [form.texts(name) for name in ("id", "points", "text", "note", "group")]
    if len({len(column) for column in columns}) != 1:
        raise UsageError("The form lacks something. Open the page again.")
    removed, items = form.texts("remove"), []
    for item_id, points, text, note, group in zip(*columns, strict=True):
        if item_id in removed or not (item_id.strip() or text.strip()):
            continue
        value = points_in(points.strip())
        if value is None or isinstance(value, MarkFault):
            raise UsageError(f"'{item_id}': '{points}' is not a number of points. Write one, as -1.5.")
        items.append(
            MarkingItem(item_id.strip(), target, value, " ".join(text.split()), note.strip(), group.strip())
        )
    return items
