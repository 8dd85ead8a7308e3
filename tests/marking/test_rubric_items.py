"""Rubric items in their file, and changes of them in retrospect."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from grader.course.marking_file import read_marking_items
from grader.domain.edit import Marked, Released
from grader.domain.errors import CourseError, UsageError
from grader.marking.audit_log import audit_log
from grader.marking.desk import Desk, handle_of
from grader.marking.mark_saving import ChosenMark, opened_task, save_mark
from grader.marking.rubric_changes import bring_up_to_date, marks_behind, preview
from grader.marking.rubric_items import (
    ItemsChanged,
    MarkingItem,
    MarkingItems,
    marking_items,
    points_by_items,
    write_items,
)
from tests.marking.conftest import ITEMS, NOW, STUDENTS, TEAM


def given(desk: Desk, student_id: str, chosen: ChosenMark, target: str = "q6") -> None:
    handle = handle_of(desk, student_id)
    at = opened_task(desk, target, handle, "ta1").version
    save_mark(desk, target, handle, chosen, "ta1", NOW, drawn_from=at)


def with_points(items: MarkingItems, item_id: str, points: float) -> MarkingItems:
    changed = [replace(item, points=points) if item.id == item_id else item for item in items.items]
    return replace(items, items=tuple(changed))


def marks(desk: Desk, target: str = "q6") -> dict[str, float | None]:
    edits = [edit for edit in desk.book.edits() if isinstance(edit, Marked) and edit.target == target]
    return {edit.student_id or "": edit.points for edit in edits}


# --- file ------------------------------------------------------------------------------------------------


def test_the_file_is_read(desk: Desk) -> None:
    items = marking_items(desk)
    assert items.of("q6")[0] == MarkingItem(
        "no_order", "q6", -1.5, "Order is not named.", "Also if only numbering is named."
    )
    assert [item.id for item in items.items] == ["no_order", "no_example", "compares"]
    assert items.from_zero == ("q7",) and len(items.version) == 16


def test_an_assignment_needs_no_items(desk: Desk) -> None:
    (desk.assignment.folder / "marking.toml").unlink()
    assert marking_items(desk) == MarkingItems((), (), "")
    write_items(desk, MarkingItems((MarkingItem("late", "q9", 0, "Was late."),), (), ""), NOW, by="ta1")
    assert marking_items(desk).items[0].points == 0


def test_what_is_written_is_read_again(desk: Desk) -> None:
    hostile = 'A "quote", a \\ and\na line, \x7f, \u202e, ]]\n[[item]] and é = ۵'
    added = MarkingItem("q10.x-1", "q10.class_token", 0.333, hostile, "For \u0000 us", "Gro\nup")
    before = marking_items(desk)
    after = write_items(desk, replace(before, items=(*before.items, added)), NOW, by="ta1")
    assert after.version != before.version and after == marking_items(desk)
    assert after.items[:-1] == before.items and after.from_zero == before.from_zero
    last = after.items[-1]
    assert (last.id, last.target, last.points, last.group) == ("q10.x-1", "q10.class_token", 0.33, "Gro up")
    assert last.text.count("\n") == 2 and "[[item]] and é" in last.text and "\u202e" not in last.text
    text = (desk.assignment.folder / "marking.toml").read_text(encoding="utf-8")
    assert text.startswith("# Ours.\n"), "a comment at the beginning stays"
    assert read_marking_items(desk.assignment.folder, desk.assignment.rubric, ()).items[-1].text == last.text
    [entry] = audit_log(desk)
    assert (entry.action.value, entry.detail, entry.who) == ("items_changed", "added q10.x-1", "ta1")


def test_who_did_not_see_a_change_does_not_undo_it(desk: Desk) -> None:
    seen = marking_items(desk)
    write_items(desk, with_points(seen, "no_order", -2), NOW, by="ta1")
    with pytest.raises(ItemsChanged) as caught:
        write_items(desk, with_points(seen, "no_example", -2), NOW, by="ta2")
    assert caught.value.current == marking_items(desk)
    assert [item.points for item in marking_items(desk).of("q6")] == [-2, -1]


def test_one_of_two_writers_wins(desk: Desk) -> None:
    seen, begin, outcomes = marking_items(desk), threading.Barrier(2), []

    def work(points: float) -> None:
        begin.wait()
        try:
            outcomes.append(write_items(desk, with_points(seen, "no_order", points), NOW, by="ta1"))
        except ItemsChanged:
            outcomes.append(None)

    threads = [threading.Thread(target=work, args=(points,)) for points in (-2.0, -3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(None) == 1 and marking_items(desk) in outcomes


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "a b"}, "Use only letters"),
        ({"id": "no_example"}, "has the id of another"),
        ({"id": "position_order_only"}, "has the id of another"),
        ({"target": "q66"}, "nothing is marked as 'q66'"),
        ({"target": "q10"}, "nothing is marked as 'q10'"),
        ({"text": " "}, "'text'"),
        ({"points": float("inf")}, "finite"),
        ({"text": "x" * 2001}, "'text'"),
    ],
)
def test_what_could_not_be_read_is_not_written(desk: Desk, change: dict[str, object], sentence: str) -> None:
    items = marking_items(desk)
    wrong = replace(items.items[0], **change)  # type: ignore[arg-type]
    with pytest.raises(CourseError, match=sentence):
        write_items(desk, replace(items, items=(wrong, *items.items[1:])), NOW, by="ta1")
    assert (desk.assignment.folder / "marking.toml").read_text(encoding="utf-8") == ITEMS


def test_a_file_for_several_editions_is_left_to_its_author(desk: Desk) -> None:
    path = desk.assignment.folder / "marking.toml"
    edition = replace(desk.assignment.edition, chosen=("laptop",), all_choices=("laptop", "gpu"))
    path.write_text(f"{ITEMS}# >>> ONLY laptop\n# <<< ONLY\n", encoding="utf-8")
    editions = replace(desk, assignment=replace(desk.assignment, edition=edition))
    with pytest.raises(UsageError, match="in an editor"):
        write_items(editions, marking_items(editions), NOW, by="ta1")


def test_the_points_of_items_are_bounded(desk: Desk) -> None:
    assert points_by_items(desk, "q6", ()) == 5 and points_by_items(desk, "q7", ()) == 0
    assert points_by_items(desk, "q6", ("no_order", "no_example")) == 2.5
    assert points_by_items(desk, "q6", ("no_order",), 9) == 5
    write_items(desk, with_points(marking_items(desk), "no_order", -9), NOW, by="ta1")
    assert points_by_items(desk, "q6", ("no_order",)) == 0
    assert points_by_items(desk, "q6", ("no_order",), 1.5) == 1.5, "the adjustment comes after the bound"
    with pytest.raises(UsageError, match="'compares'"):
        points_by_items(desk, "q6", ("compares",))


# --- changes ---------------------------------------------------------------------------------------------


def test_a_change_is_shown_before_it_is_made(desk: Desk) -> None:
    given(desk, STUDENTS[0], ChosenMark(items=("no_order",)))
    given(desk, STUDENTS[1], ChosenMark(items=("no_order", "no_example"), adjustment=0.5, reason="Nearly."))
    given(desk, STUDENTS[2], ChosenMark(items=("no_example",)))
    given(desk, STUDENTS[3], ChosenMark(points=2))
    before = marks(desk)
    affected = {mark.handle: mark for mark in preview(desk, "no_order", -2, NOW)}
    assert set(affected) == {handle_of(desk, student_id) for student_id in STUDENTS[:2]}
    one = affected[handle_of(desk, STUDENTS[1])]
    assert (one.points_before, one.points_after, one.marker) == (3.0, 2.5, "ta1")
    assert one.total_before is not None and one.total_after == one.total_before - 0.5
    assert marks(desk) == before and marks_behind(desk, NOW) == ()
    with pytest.raises(UsageError, match="no rubric item 'nothing'"):
        preview(desk, "nothing", 1, NOW)


def test_marks_follow_a_change_in_retrospect(desk: Desk) -> None:
    given(desk, STUDENTS[0], ChosenMark(items=("no_order",)))
    given(desk, STUDENTS[1], ChosenMark(items=("no_order",), adjustment=0.5, reason="Nearly."))
    given(desk, TEAM[0], ChosenMark(items=("no_order",), comment="Both."))
    given(desk, STUDENTS[3], ChosenMark(items=("no_example",)))
    write_items(desk, with_points(marking_items(desk), "no_order", -2), NOW, by="head")
    assert len(marks_behind(desk, NOW)) == len(marks_behind(desk, NOW, target="q6")) == 4
    assert marks_behind(desk, NOW, target="q7") == ()
    outcome = bring_up_to_date(desk, "head", NOW)
    assert len(outcome.changed) == 4 and outcome.left == ()
    assert marks(desk) == {
        STUDENTS[0]: 3.0, STUDENTS[1]: 3.5, TEAM[0]: 3.0, TEAM[1]: 3.0, STUDENTS[3]: 4.0,
    }  # fmt: skip
    last = [edit for edit in desk.book.edits(TEAM[1]) if isinstance(edit, Marked)][-1]
    assert (last.who, last.comment) == ("head", "Both.")
    assert last.why == "Rubric items changed (no_order: -1.5 -> -2)."
    assert marks_behind(desk, NOW) == () and bring_up_to_date(desk, "head", NOW).changed == ()


def test_a_change_by_hand_is_noticed_and_a_removed_item_keeps_its_points(desk: Desk) -> None:
    given(desk, STUDENTS[0], ChosenMark(items=("no_order", "no_example")))
    path = desk.assignment.folder / "marking.toml"
    path.write_text(ITEMS.replace("points = -1.5", "points = -2.5"), encoding="utf-8")
    [mark] = marks_behind(desk, NOW)
    assert (mark.points_before, mark.points_after) == (2.5, 1.5)
    items = marking_items(desk)
    left = tuple(item for item in items.items if item.id != "no_order")
    write_items(desk, replace(items, items=left), NOW, by="head")
    assert marks_behind(desk, NOW) == () and marks(desk)[STUDENTS[0]] == 2.5


def test_a_released_grade_is_left_when_it_would_fall(desk: Desk, added: Callable[..., None]) -> None:
    for student_id in STUDENTS[:2]:
        given(desk, student_id, ChosenMark(items=("no_order",)))
    total = desk.book.snapshot().totals[STUDENTS[0]].points
    added(Released(who="head", when=NOW, why="", student_id=STUDENTS[0], way="publish", points=total))
    write_items(desk, with_points(marking_items(desk), "no_order", -2), NOW, by="head")
    assert {mark.lowers for mark in marks_behind(desk, NOW)} == {True, False}
    outcome = bring_up_to_date(desk, "head", NOW)
    assert [mark.handle for mark in outcome.left] == [handle_of(desk, STUDENTS[0])]
    assert marks(desk) == {STUDENTS[0]: 3.5, STUDENTS[1]: 3.0}
    assert len(bring_up_to_date(desk, "head", NOW, allow_lower=True).changed) == 1
    assert marks(desk)[STUDENTS[0]] == 3.0


@pytest.mark.slow
def test_more_marks_than_go_into_one_transaction(desk: Desk, class_evidence: Callable[..., object]) -> None:
    students = [f"4001013{number:02}" for number in range(45)]
    for student_id in students:
        desk.book.record(class_evidence(student_id), {})
    for student_id in students:
        given(desk, student_id, ChosenMark(items=("no_order",)))
    write_items(desk, with_points(marking_items(desk), "no_order", -2), NOW, by="head")
    assert len(bring_up_to_date(desk, "head", NOW).changed) == 45
    assert set(marks(desk).values()) == {3.0} and marks_behind(desk, NOW) == ()
