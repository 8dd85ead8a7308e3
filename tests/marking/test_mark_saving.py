"""Marks with versions: nobody overwrites a colleague's unseen, and sheets see the same marks."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from grader.decisions.mark_entries import MarkRefused
from grader.decisions.marking import import_marks
from grader.decisions.marking_sheet import SheetRequest, export_sheets
from grader.decisions.sheet_files import read_sheet
from grader.domain.edit import Marked, Released
from grader.domain.errors import UsageError
from grader.gradebook import Gradebook
from grader.marking import audit_log
from grader.marking.desk import Desk, assignment_now, handle_of
from grader.marking.mark_edits import WouldLower
from grader.marking.mark_saving import (
    ChosenMark,
    Conflict,
    SavedMark,
    drop_draft,
    keep_draft,
    opened_task,
    save_mark,
    withdraw_mark,
)
from grader.marking.task_list import next_unmarked
from grader.results.class_pages import caught_up, write_pages
from grader.results.current_state import results_now
from grader.results.session import ClassSession
from tests.marking.conftest import ITEMS, NOW, STUDENTS, TEAM

ONE = STUDENTS[0]


@pytest.fixture
def handle(desk: Desk) -> str:
    return handle_of(desk, ONE)


def save(
    desk: Desk,
    handle: str,
    chosen: ChosenMark,
    *,
    at: int = 0,
    who: str = "ta1",
    target: str = "q6",
    **more: bool,
) -> SavedMark:
    return save_mark(desk, target, handle, chosen, who, NOW, drawn_from=at, **more)


def last_mark(desk: Desk) -> Marked:
    return [edit for edit in desk.book.edits() if isinstance(edit, Marked)][-1]


def test_a_mark_is_the_edit_that_a_command_would_give(desk: Desk, handle: str) -> None:
    saved = save(desk, handle, ChosenMark(points=3.456, comment=" Good. ", remarks=("position_order_only",)))
    edit = last_mark(desk)
    text = next(one.text for one in desk.assignment.remarks if one.id == "position_order_only")
    assert edit == Marked(
        who="ta1", when=NOW, why="", student_id=ONE, run=1, target="q6", points=3.46, comment="Good.",
        remarks=(("position_order_only", text),),
    )  # fmt: skip
    assert saved.stored is not None and saved.version == saved.stored.version > 0
    assert saved.stored.points == 3.46 and saved.stored.remarks == edit.remarks
    opened = opened_task(desk, "q6", handle, "ta2")
    assert (opened.mark, opened.version) == (saved.stored, saved.version)
    assert opened.title == next(item.title for item in desk.assignment.rubric if item.id == "q6")
    assert (opened.maximum, opened.start, opened.team, opened.second) == (5, 5, 1, False)


def test_totals_and_scores_are_those_of_a_revision(desk: Desk, handle: str) -> None:
    """The recorded total is what the class's scores say, so that no page is taken for outdated."""
    before = results_now(desk.assignment, desk.book.snapshot())[0].score
    saved = save(desk, handle, ChosenMark(points=3))
    snapshot = desk.book.snapshot()
    after = results_now(desk.assignment, snapshot)[0].score
    assert after.total == before.total + 3
    assert snapshot.totals[ONE].points == after.total and snapshot.totals[ONE].who == "ta1"
    assert len(saved.changes) == 1 and saved.changes[0].startswith(ONE)


def test_pages_are_written_later_by_whoever_comes(desk: Desk, handle: str) -> None:
    write_pages(assignment_now(desk), desk.book, desk.out, NOW)
    save(desk, handle, ChosenMark(points=3, comment="Very clear."))
    results = desk.out / "results.json"
    assert "Very clear." not in (desk.out / "students" / ONE / "report.html").read_text(encoding="utf-8")
    assert caught_up(assignment_now(desk), desk.book, desk.out, lambda: NOW) is not None
    shown = {one["student_id"]: one for one in json.loads(results.read_text("utf-8"))["submissions"]}
    assert {"id": "q6", "points": 3.0, "max": 5}.items() <= next(
        item for item in shown[ONE]["items"] if item["id"] == "q6"
    ).items()
    assert "Very clear." in (desk.out / "students" / ONE / "report.html").read_text(encoding="utf-8")


def test_who_saves_second_sees_both(desk: Desk, handle: str) -> None:
    mine = ChosenMark(points=2, comment="Too short.")
    first = save(desk, handle, ChosenMark(points=4), who="ta1")
    with pytest.raises(Conflict) as caught:
        save(desk, handle, mine, who="ta2")
    assert caught.value.theirs == first.stored and caught.value.yours == mine
    assert last_mark(desk).points == 4, "nothing was overwritten"
    draft = opened_task(desk, "q6", handle, "ta2").draft
    assert draft is not None and draft.chosen == mine and draft.is_outdated
    save(desk, handle, mine, who="ta2", at=caught.value.theirs.version)
    assert last_mark(desk).points == 2 and opened_task(desk, "q6", handle, "ta2").draft is None


def test_a_conflict_with_the_same_mark_is_none(desk: Desk, handle: str) -> None:
    first = save(desk, handle, ChosenMark(points=4))
    again = save(desk, handle, ChosenMark(points=4), who="ta2")
    assert (again.stored, again.version) == (None, first.version)
    assert last_mark(desk).who == "ta1"


def test_a_mark_by_a_sheet_is_a_conflict_as_well(
    desk: Desk, handle: str, added: Callable[..., None], mark: Callable[..., Marked]
) -> None:
    version = opened_task(desk, "q6", handle, "ta1").version
    added(mark(ONE, "q6", 1.0, sheet="marks.csv"))
    with pytest.raises(Conflict) as caught:
        save(desk, handle, ChosenMark(points=4), at=version)
    assert (caught.value.theirs.marker, caught.value.theirs.sheet) == ("ta9", "marks.csv")


def test_two_at_the_same_moment_do_not_both_save(desk: Desk, other_book: Callable[[], Gradebook]) -> None:
    """Two processes, each with its own connection, for each of nine submissions."""
    handles = [handle_of(desk, student_id) for student_id in STUDENTS[:-1]]
    begin, outcomes = threading.Barrier(2), []

    def work(who: str, points: float) -> None:
        with other_book() as book:
            own = Desk(desk.out, book, desk.assignment)
            for handle in handles:
                begin.wait()
                try:
                    outcomes.append(save(own, handle, ChosenMark(points=points), who=who).version)
                except Conflict as conflict:
                    outcomes.append(conflict)

    threads = [threading.Thread(target=work, args=one) for one in (("ta1", 1.0), ("ta2", 2.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conflicts = [one for one in outcomes if isinstance(one, Conflict)]
    assert len(outcomes) == 18 and len(conflicts) == 9
    marks = [edit for edit in desk.book.edits() if isinstance(edit, Marked) and edit.student_id != TEAM[1]]
    assert len(marks) == 9, "each submission has one mark"


def test_many_threads_of_one_process_lose_nothing(desk: Desk) -> None:
    """Each takes the next one and saves; together they mark all, each once."""
    saved: list[str] = []

    def work(who: str) -> None:
        after = ""
        while (handle := next_unmarked(desk, "q7", who, NOW, after=after)) is not None:
            try:
                if save(desk, handle, ChosenMark(points=3), who=who, target="q7").stored is not None:
                    saved.append(handle)
            except Conflict:
                pass
            after = handle

    threads = [threading.Thread(target=work, args=(f"ta{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(saved) == len(set(saved)) == 9


def test_a_version_of_another_gradebook_is_refused(desk: Desk, handle: str) -> None:
    with pytest.raises(UsageError, match="Load the page again"):
        save(desk, handle, ChosenMark(points=4), at=77)


@pytest.mark.parametrize(
    ("target", "chosen", "told"),
    [
        ("q6", ChosenMark(points=6), "from 0 to 5"),
        ("q6", ChosenMark(points=-1), "from 0 to 5"),
        ("q6", ChosenMark(points=float("nan")), "a number"),
        ("q6", ChosenMark(points=3, remarks=("effect_not_measured",)), "is about 'q7'"),
        ("q6", ChosenMark(points=3, remarks=("position_order_onl",)), "Did you mean 'position_order_only'"),
        ("q6", ChosenMark(points=3, comment="x" * 5001), "At most 5000"),
        ("q6", ChosenMark(items=("compares",)), "no rubric item 'compares'"),
        ("q8", ChosenMark(), "Give points"),
    ],
)
def test_what_a_sheet_could_not_say_is_refused(
    desk: Desk, handle: str, target: str, chosen: ChosenMark, told: str
) -> None:
    with pytest.raises(MarkRefused, match=told):
        save(desk, handle, chosen, target=target)
    assert not [edit for edit in desk.book.edits() if isinstance(edit, Marked)]


def test_rubric_items_give_the_points(desk: Desk, handle: str) -> None:
    full = save(desk, handle, ChosenMark())
    assert full.stored is not None and full.stored.points == 5
    stored = save(desk, handle, ChosenMark(items=("no_example", "no_order")), at=full.version).stored
    assert stored is not None and stored.points == 2.5 and stored.adjustment == 0
    assert stored.items == (("no_order", -1.5), ("no_example", -1.0))
    edit = last_mark(desk)
    assert edit.remarks == (("no_order", "Order is not named."), ("no_example", "There is no example."))
    assert save(desk, handle, ChosenMark(items=("compares",)), target="q7").stored.points == 2
    report = results_now(assignment_now(desk), desk.book.snapshot())[0].score
    line = next(line for line in report.lines if line.id == "q6")
    assert line.comments == ("Order is not named.", "There is no example.")


def test_a_mark_keeps_items_that_were_removed_until_they_are_left_out(desk: Desk, handle: str) -> None:
    first = save(desk, handle, ChosenMark(items=("no_order", "no_example")))
    (desk.assignment.folder / "marking.toml").write_text(ITEMS.replace("no_order", "other"), encoding="utf-8")
    [removed] = opened_task(desk, "q6", handle, "ta1").removed
    assert (removed.id, removed.target, removed.points, removed.text) == (
        "no_order", "q6", -1.5, "Order is not named.",
    )  # fmt: skip
    kept = ChosenMark(items=("no_order", "no_example"), comment="Well written.")
    stored = save(desk, handle, kept, at=first.version).stored
    assert stored is not None and (stored.points, stored.adjustment, stored.comment) == (
        2.5, 0, "Well written.",
    )  # fmt: skip
    assert dict(stored.items) == {"no_order": -1.5, "no_example": -1.0}
    assert dict(last_mark(desk).remarks)["no_order"] == "Order is not named."
    left_out = save(desk, handle, ChosenMark(items=("no_example",)), at=stored.version)
    assert left_out.stored is not None and left_out.stored.points == 4
    assert opened_task(desk, "q6", handle, "ta1").removed == ()
    with pytest.raises(MarkRefused, match="no rubric item 'no_order' for 'q6' any more"):
        save(desk, handle, kept, at=left_out.version)


def test_an_adjustment_needs_a_reason(desk: Desk, handle: str) -> None:
    chosen = ChosenMark(items=("no_order",), adjustment=0.5)
    with pytest.raises(UsageError, match="Say why"):
        save(desk, handle, chosen)
    with pytest.raises(UsageError, match="Say why"):
        save(desk, handle, ChosenMark(items=("no_order",), points=4))
    stored = save(desk, handle, replace(chosen, reason="The figure\nshows it.")).stored
    assert stored is not None
    assert (stored.points, stored.adjustment, stored.why) == (4.0, 0.5, "The figure shows it.")
    assert last_mark(desk).comment == "", "students do not read it"


def test_points_stay_within_the_part(desk: Desk, handle: str) -> None:
    stored = save(desk, handle, ChosenMark(items=("no_order",), adjustment=9, reason="Brilliant.")).stored
    assert stored is not None and (stored.points, stored.adjustment) == (5.0, 1.5)


def test_a_released_grade_does_not_fall(desk: Desk, handle: str, added: Callable[..., None]) -> None:
    first = save(desk, handle, ChosenMark(points=4))
    total = desk.book.snapshot().totals[ONE].points
    added(Released(who="head", when=NOW, why="", student_id=ONE, way="publish", points=total))
    with pytest.raises(WouldLower) as caught:
        save(desk, handle, ChosenMark(points=3), at=first.version)
    assert ONE not in str(caught.value), "the page is blind"
    assert last_mark(desk).points == 4
    save(desk, handle, ChosenMark(points=4.5), at=first.version)
    with pytest.raises(WouldLower):
        withdraw_mark(desk, "q6", handle, "ta1", NOW, why="No.", drawn_from=last_version(desk, handle))
    save(desk, handle, ChosenMark(points=3), at=last_version(desk, handle), allow_lower=True)
    assert last_mark(desk).points == 3


def last_version(desk: Desk, handle: str) -> int:
    return opened_task(desk, "q6", handle, "ta1").version


def test_a_mark_can_be_taken_back_with_a_reason(desk: Desk, handle: str) -> None:
    version = save(desk, handle, ChosenMark(points=4)).version
    with pytest.raises(UsageError, match="Say why"):
        withdraw_mark(desk, "q6", handle, "ta1", NOW, why=" ", drawn_from=version)
    with pytest.raises(Conflict):
        withdraw_mark(desk, "q6", handle, "ta2", NOW, why="No.", drawn_from=0)
    after = withdraw_mark(desk, "q6", handle, "ta1", NOW, why="The wrong page.", drawn_from=version)
    opened = opened_task(desk, "q6", handle, "ta1")
    assert (opened.mark, opened.version) == (None, after.version)
    assert [mark.points for mark in opened.history] == [4.0, None]
    assert [entry.action.value for entry in audit_log.audit_log(desk)] == ["withdrawn", "marked"]


def test_marks_of_an_earlier_attempt_are_told_apart(
    desk: Desk, handle: str, class_evidence: Callable[..., object]
) -> None:
    save(desk, handle, ChosenMark(points=4))
    desk.book.record(replace(class_evidence(ONE), submission_digest="later"), {})
    [earlier] = opened_task(desk, "q6", handle, "ta1").history
    assert earlier.earlier_attempt and earlier.points == 4


def test_a_draft_survives_another_process(
    desk: Desk, other_book: Callable[[], Gradebook], handle: str
) -> None:
    chosen = ChosenMark(items=("no_order",), comment="Half a sent", adjustment=0.25, reason="\ud800?")
    keep_draft(desk, "q6", handle, chosen, "ta1", NOW, drawn_from=0)
    keep_draft(desk, "q7", handle, ChosenMark(points=1), "ta1", NOW, drawn_from=0)
    with other_book() as book:
        draft = opened_task(Desk(desk.out, book, desk.assignment), "q6", handle, "ta1").draft
    assert draft is not None and (draft.drawn_from, draft.when, draft.is_outdated) == (0, NOW, False)
    assert draft.chosen.items == ("no_order",) and draft.chosen.comment == "Half a sent"
    assert opened_task(desk, "q6", handle, "ta2").draft is None, "it is nobody else's"
    drop_draft(desk, "q6", handle, "ta1")
    assert opened_task(desk, "q6", handle, "ta1").draft is None
    assert opened_task(desk, "q7", handle, "ta1").draft is not None


def test_a_draft_is_outdated_when_somebody_saves(desk: Desk, handle: str) -> None:
    keep_draft(desk, "q6", handle, ChosenMark(points=1), "ta1", NOW, drawn_from=0)
    save(desk, handle, ChosenMark(points=2), who="ta2")
    draft = opened_task(desk, "q6", handle, "ta1").draft
    assert draft is not None and draft.is_outdated


def test_a_draft_says_when_it_is_of_other_files_than_those_that_count(
    desk: Desk, handle: str, class_evidence: Callable[..., object]
) -> None:
    def of_other_files(target: str) -> bool:
        draft = opened_task(desk, target, handle, "ta1").draft
        assert draft is not None
        return draft.is_of_other_files

    run = opened_task(desk, "q6", handle, "ta1").run
    keep_draft(desk, "q6", handle, ChosenMark(points=1), "ta1", NOW, drawn_from=0, seen=run)
    keep_draft(desk, "q7", handle, ChosenMark(points=1), "ta1", NOW, drawn_from=0)
    assert not of_other_files("q6")
    desk.book.record(replace(class_evidence(ONE), submission_digest="later"), {})
    assert of_other_files("q6")
    assert not of_other_files("q7"), "what was not noted is not guessed"


def test_sheets_and_the_desk_see_each_others_marks(
    desk: Desk, session: ClassSession, handle: str, tmp_path: Path
) -> None:
    version = save(desk, handle, ChosenMark(items=("no_order",), comment="Short.")).version
    session = replace(session, assignment=assignment_now(desk))
    sheet = tmp_path / "marks.csv"
    export_sheets(session, SheetRequest(sheet, items=("q6",)))
    text = sheet.read_text(encoding="utf-8-sig")
    assert "no_order" in text and "Short." in text
    lines = text.splitlines()
    changed = [line.replace(",3.5,", ",3,") if line.startswith(ONE) else line for line in lines]
    assert changed != lines
    sheet.write_text("\n".join(changed), encoding="utf-8-sig")
    given = import_marks(session, read_sheet(sheet))
    assert len(given.entries) == 1
    opened = opened_task(desk, "q6", handle, "ta1")
    assert opened.version > version and opened.mark is not None
    assert (opened.mark.points, opened.mark.items, opened.mark.adjustment) == (
        3.0,
        (("no_order", -1.5),),
        -0.5,
    )
    assert (opened.mark.marker, opened.mark.sheet) == ("ta9", "marks.csv")


def test_a_member_with_a_mark_of_their_own_keeps_it(
    desk: Desk, added: Callable[..., None], mark: Callable[..., Marked]
) -> None:
    added(mark(TEAM[1], "q6", 1.0))
    saved = save(desk, handle_of(desk, TEAM[0]), ChosenMark(points=4))
    points = dict.fromkeys(TEAM, 0.0) | {
        edit.student_id: edit.points for edit in desk.book.edits() if isinstance(edit, Marked)
    }
    assert points == {TEAM[0]: 4.0, TEAM[1]: 1.0} and TEAM[1] in saved.notes[0]
