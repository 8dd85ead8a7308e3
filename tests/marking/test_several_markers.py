"""Who has what open, who marks what, notes and flags, second marks, progress, and the log of it all."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from grader.domain.errors import UsageError
from grader.gradebook import Gradebook
from grader.marking import allocation
from grader.marking.audit_log import Action, add_entry, audit_log, reveal
from grader.marking.desk import Desk, UnknownTask, handle_of, students_of
from grader.marking.mark_saving import ChosenMark, opened_task, save_mark
from grader.marking.marker_progress import marker_progress
from grader.marking.presence import EXPIRES, leave, present, touch
from grader.marking.second_marking import agreement, choose_second
from grader.marking.task_list import questions, task_lines
from tests.marking.conftest import NOW, STUDENTS, TASKS, TEAM

MINUTE = timedelta(minutes=1)


def handles(desk: Desk, target: str = "q6") -> list[str]:
    return [line.handle for line in task_lines(desk, target, "", NOW)]


def assigned(desk: Desk, target: str = "q6") -> dict[str, str]:
    return {line.handle: line.assigned for line in task_lines(desk, target, "", NOW)}


def save(desk: Desk, handle: str, points: float, who: str = "ta1", **more: str) -> None:
    chosen = ChosenMark(points=points, comment=more.get("comment", ""))
    at = opened_task(desk, "q6", handle, who).version
    save_mark(desk, "q6", handle, chosen, who, NOW, drawn_from=at)


# --- presence --------------------------------------------------------------------------------------------


def test_the_first_one_holds_and_nobody_takes_that_by_opening(
    desk: Desk, other_book: Callable[[], Gradebook]
) -> None:
    handle = handles(desk)[0]
    touch(desk, "q6", handle, "ta2", NOW)
    here = touch(desk, "q6", handle, "ta1", NOW + MINUTE)
    assert [(one.marker, one.holds) for one in here] == [("ta2", True), ("ta1", False)]
    here = touch(desk, "q6", handle, "ta2", NOW + 2 * MINUTE)
    assert (here[0].marker, here[0].since, here[0].active) == ("ta2", NOW, NOW + 2 * MINUTE)
    assert present(desk, "q7", handle, NOW) == (), "another part is another task"
    with other_book() as book:
        other = Desk(desk.out, book, desk.assignment)
        assert [one.marker for one in present(other, "q6", handle, NOW + 2 * MINUTE)] == ["ta2", "ta1"]


def test_a_hold_ends_after_ten_minutes_without_activity(desk: Desk) -> None:
    handle = handles(desk)[0]
    touch(desk, "q6", handle, "ta1", NOW)
    assert present(desk, "q6", handle, NOW + EXPIRES)
    late = NOW + EXPIRES + timedelta(seconds=1)
    assert present(desk, "q6", handle, late) == ()
    [other] = touch(desk, "q6", handle, "ta2", late)
    assert other.holds
    here = touch(desk, "q6", handle, "ta1", late + MINUTE)
    assert [(one.marker, one.since) for one in here] == [("ta2", late), ("ta1", late + MINUTE)]


def test_activity_keeps_a_hold(desk: Desk) -> None:
    handle = handles(desk)[0]
    for minutes in range(0, 40, 8):
        [here] = touch(desk, "q6", handle, "ta1", NOW + minutes * MINUTE)
    assert here.since == NOW


def test_who_leaves_holds_nothing(desk: Desk) -> None:
    handle = handles(desk)[0]
    touch(desk, "q6", handle, "ta1", NOW)
    touch(desk, "q6", handle, "ta2", NOW)
    leave(desk, "q6", handle, "ta1")
    assert [(one.marker, one.holds) for one in present(desk, "q6", handle, NOW)] == [("ta2", True)]


# --- allocation ------------------------------------------------------------------------------------------


def test_a_question_can_be_ones_own(desk: Desk) -> None:
    save(desk, handles(desk)[0], 3)
    assert allocation.assign_question(desk, "q6", "ta2", NOW, by="head") == TASKS - 1
    assert list(assigned(desk).values()) == ["", *["ta2"] * (TASKS - 1)]
    assert set(assigned(desk, "q7").values()) == {""}
    [mine] = [one for one in questions(desk, "ta1") if one.target == "q6"]
    [theirs] = [one for one in questions(desk, "ta2") if one.target == "q6"]
    assert (mine.left, mine.mine_left, theirs.mine_left) == (TASKS - 1, 0, TASKS - 1)
    allocation.assign_question(desk, "q6", "", NOW, by="head")
    assert set(assigned(desk).values()) == {""}


def test_shares_are_proportional(desk: Desk) -> None:
    counts = allocation.assign_shares(desk, "q6", {"ta1": 2, "ta2": 1}, NOW, by="head")
    assert counts == {"ta1": 6, "ta2": 3}
    assert list(assigned(desk).values()) == ["ta1"] * 6 + ["ta2"] * 3
    with pytest.raises(UsageError, match="above 0"):
        allocation.assign_shares(desk, "q6", {"ta1": 0}, NOW, by="head")


@pytest.mark.parametrize(
    ("count", "weights", "shares"),
    [
        (10, {"a": 1, "b": 1, "c": 1}, {"a": 4, "b": 3, "c": 3}),
        (1, {"a": 1, "b": 3}, {"a": 0, "b": 1}),
        (0, {"a": 1}, {"a": 0}),
        (7, {"a": 0.5, "b": 0.5}, {"a": 4, "b": 3}),
    ],
)
def test_remainders_are_shared_out(count: int, weights: dict[str, float], shares: dict[str, int]) -> None:
    assert allocation.shares(count, weights) == shares


def test_sections_and_lists(desk: Desk) -> None:
    sections = {student_id: "A" if number < 4 else "B" for number, student_id in enumerate(STUDENTS)}
    counts = allocation.assign_sections(desk, "q6", sections, {"A": ["ta1"]}, NOW, by="head")
    assert counts == {"ta1": 4}
    by_student = {students_of(desk, handle)[0]: marker for handle, marker in assigned(desk).items()}
    assert {student for student, marker in by_student.items() if marker == "ta1"} == set(STUDENTS[:4])
    assert allocation.assign_list(desk, "q6", [STUDENTS[0], TEAM[1]], "ta3", NOW, by="head") == 2
    assert assigned(desk)[handle_of(desk, TEAM[0])] == assigned(desk)[handle_of(desk, STUDENTS[0])] == "ta3"
    counts = allocation.assign_sections(desk, "q6", sections, {"A": ["ta1", "ta2"]}, NOW, by="head")
    assert counts == {"ta1": 2, "ta2": 2}, "the assistants of a section share it"
    before = assigned(desk)
    with pytest.raises(UnknownTask, match="'nobody'"):
        allocation.assign_list(desk, "q6", [STUDENTS[5], "nobody"], "ta3", NOW, by="head")
    assert assigned(desk) == before


def test_what_is_handed_over_comes_with_its_note(desk: Desk) -> None:
    handle = handles(desk)[0]
    touch(desk, "q6", handle, "ta1", NOW)
    allocation.skip(desk, "q6", handle, "ta2", NOW)
    allocation.hand_over(desk, "q6", handle, "ta2", "ta1", NOW, text="I know this student.")
    [line] = [one for one in task_lines(desk, "q6", "ta2", NOW) if one.handle == handle]
    assert (line.assigned, line.skipped, line.holder) == ("ta2", False, "")
    [note] = allocation.notes(desk, handle)
    assert (note.marker, note.text, note.target) == ("ta1", "I know this student.", "q6")


def test_notes_are_about_the_submission_and_stay(desk: Desk) -> None:
    handle = handle_of(desk, TEAM[1])
    allocation.add_note(desk, "q6", handle, "Odd <b>figure</b>\x00", "ta1", NOW)
    allocation.add_note(desk, "", handle, "Seen before.", "ta2", NOW)
    assert [(one.target, one.marker) for one in allocation.notes(desk, handle)] == [
        ("q6", "ta1"),
        ("", "ta2"),
    ]
    assert "\x00" not in allocation.notes(desk, handle)[0].text
    with pytest.raises(UsageError, match="Write something"):
        allocation.add_note(desk, "", handle, "  ", "ta1", NOW)
    for statement in ("DELETE FROM marking_notes", "UPDATE marking_notes SET text = ''"):
        with pytest.raises(UsageError, match="only grows"), desk.book._database.writing() as connection:
            connection.exec_driver_sql(statement)


def test_flags_are_seen_by_all_until_somebody_removes_them(desk: Desk) -> None:
    handle = handles(desk)[2]
    allocation.flag(desk, "q6", handle, "Copied?", "ta1", NOW)
    allocation.flag(desk, "q6", handle, "I think so, too.", "ta2", NOW)
    assert [one.text for one in allocation.flags(desk, "q6", handle)] == ["Copied?", "I think so, too."]
    assert [line.handle for line in task_lines(desk, "q6", "ta3", NOW) if line.flagged] == [handle]
    [counted] = [one for one in questions(desk, "ta3") if one.flagged]
    assert (counted.target, counted.flagged) == ("q6", 1)
    allocation.unflag(desk, "q6", handle, "head", NOW)
    assert allocation.flags(desk, "q6", handle) == ()


# --- second marks ----------------------------------------------------------------------------------------


def seconds(desk: Desk) -> dict[str, str]:
    return {line.handle: line.second for line in task_lines(desk, "q6", "", NOW) if line.second}


def test_a_share_is_chosen_and_a_larger_one_adds_to_it(desk: Desk) -> None:
    assert choose_second(desk, "q6", 0.3, ["ta2", "ta3"], NOW, by="head") == 3
    few = seconds(desk)
    assert choose_second(desk, "q6", 0.3, ["ta2", "ta3"], NOW, by="head") == 3 and seconds(desk) == few
    assert choose_second(desk, "q6", 0.6, ["ta2", "ta3"], NOW, by="head") == 5
    assert few.keys() < seconds(desk).keys()
    counts = [list(seconds(desk).values()).count(marker) for marker in ("ta2", "ta3")]
    assert sorted(counts) == [2, 3]
    for share, markers, told in ((1.5, ["ta2"], "not from 0 to 1"), (0.5, [], "at least one")):
        with pytest.raises(UsageError, match=told):
            choose_second(desk, "q6", share, markers, NOW, by="head")


def test_nobody_marks_their_own_a_second_time(desk: Desk) -> None:
    a, b, *_ = handles(desk)
    save(desk, a, 3, "ta2")
    allocation.hand_over(desk, "q6", b, "ta2", "ta1", NOW)
    assert choose_second(desk, "q6", 1, ["ta2"], NOW, by="head") == TASKS - 2
    assert not {a, b} & seconds(desk).keys()


def test_a_second_marker_sees_no_first_mark_and_changes_no_grade(desk: Desk) -> None:
    handle = handles(desk)[0]
    choose_second(desk, "q6", 1, ["ta2"], NOW, by="head")
    save(desk, handle, 4, "ta1", comment="First.")
    before = desk.book.snapshot()
    blind = opened_task(desk, "q6", handle, "ta2")
    assert (blind.second, blind.mark, blind.version, blind.history) == (True, None, 0, ())
    [line] = [one for one in task_lines(desk, "q6", "ta2", NOW) if one.handle == handle]
    assert (line.marked, line.points, line.marker) == (False, None, "")
    save(desk, handle, 2, "ta2", comment="Second.")
    assert desk.book.snapshot() == before
    own = opened_task(desk, "q6", handle, "ta2")
    assert own.mark is not None and (own.mark.points, own.mark.comment) == (2, "Second.")
    first = opened_task(desk, "q6", handle, "ta1")
    assert first.mark is not None and (first.mark.points, len(first.history)) == (4, 1)
    save(desk, handle, 2.5, "ta2", comment="Second thoughts.")
    [pair] = agreement(desk, "q6").pairs
    assert (pair.first_marker, pair.first, pair.second_marker, pair.second) == ("ta1", 4, "ta2", 2.5)
    assert pair.comment == "Second thoughts."
    assert choose_second(desk, "q6", 0, [], NOW, by="head") == 1, "what was marked twice stays"


def test_the_agreement_is_computed(desk: Desk) -> None:
    assert agreement(desk, "q6").equal is None
    choose_second(desk, "q6", 1, ["ta2"], NOW, by="head")
    marks = [(5, 5), (4, 3), (2, 2.5), (1, 1)]
    for handle, (first, second) in zip(handles(desk), marks, strict=False):
        save(desk, handle, second, "ta2")
        save(desk, handle, first, "ta1")
    found = agreement(desk, "q6")
    assert (found.chosen, len(found.pairs), found.equal) == (TASKS, 4, 0.5)
    assert found.mean_difference == pytest.approx(-0.125) and found.mean_distance == pytest.approx(0.375)
    assert found.correlation == pytest.approx(0.9394, abs=1e-4)  # numpy.corrcoef


# --- progress --------------------------------------------------------------------------------------------


def test_progress_median_and_spread_of_each_marker(desk: Desk) -> None:
    allocation.assign_shares(desk, "q6", {"ta1": 5, "ta2": 4}, NOW, by="head")
    for handle, points in zip(handles(desk), (1, 2, 4), strict=False):
        save(desk, handle, points)
    save(desk, handles(desk)[-1], 3, "ta3")
    ta1, ta2, ta3 = marker_progress(desk, target="q6")
    assert (ta1.marker, ta1.assigned, ta1.marked, ta1.left, ta1.maximum) == ("ta1", 5, 3, 2, 5)
    assert (ta1.median, ta1.lowest, ta1.highest, ta1.last) == (2, 1, 4, NOW)
    assert ta1.spread == pytest.approx(1.5275, abs=1e-4)
    assert (ta2.marker, ta2.assigned, ta2.marked, ta2.left) == ("ta2", 4, 0, 3)
    assert (ta2.median, ta2.last) == (None, None)
    assert (ta3.marker, ta3.assigned, ta3.marked, ta3.median, ta3.spread) == ("ta3", 0, 1, 3, None)
    assert {one.target for one in marker_progress(desk)} >= {"q6", "q7"}


# --- log -------------------------------------------------------------------------------------------------


def test_a_reveal_needs_a_reason_and_is_recorded(desk: Desk) -> None:
    handle = handle_of(desk, TEAM[1])
    with pytest.raises(UsageError, match="why"):
        reveal(desk, handle, "ta1", NOW, why=" ")
    assert audit_log(desk) == ()
    assert [one.student_id for one in reveal(desk, handle, "ta1", NOW, why="A mail came.")] == list(TEAM)
    [entry] = audit_log(desk)
    assert (entry.action, entry.who, entry.when, entry.handle, entry.detail) == (
        Action.REVEALED, "ta1", NOW, handle, "A mail came.",
    )  # fmt: skip


def test_the_log_is_searched_and_only_grows(desk: Desk) -> None:
    a, b, *_ = handles(desk)
    save(desk, a, 3)
    save(desk, b, 4, "ta2")
    allocation.flag(desk, "q6", b, "Look.", "ta1", NOW)
    add_entry(desk, "head", NOW, "Started a grading.")
    entries = audit_log(desk)
    assert [(entry.action.value, entry.who) for entry in entries] == [
        ("other", "head"), ("flagged", "ta1"), ("marked", "ta2"), ("marked", "ta1"),
    ]  # fmt: skip
    assert entries[2].detail == "none -> 4" and entries[2].handle == b
    assert len(audit_log(desk, who="ta1")) == len(audit_log(desk, handle=b)) == 2
    assert len(audit_log(desk, target="q6")) == 3
    assert audit_log(desk, before=entries[1].number, limit=1) == (entries[2],)
    with pytest.raises(UsageError, match="only grows"), desk.book._database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM marking_log")
