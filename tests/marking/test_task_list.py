"""What there is to mark, in which order, and what comes next for whom."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.last_word import rule
from grader.domain.edit import Marked, OwnerAssigned, Waived
from grader.domain.evidence import Evidence
from grader.gradebook import Gradebook
from grader.gradebook.forgotten_rows import PersonalRecords
from grader.gradebook.records import read_evidence
from grader.marking import allocation, presence, second_marking
from grader.marking.desk import Desk, UnknownTask, handle_of, students_of
from grader.marking.mark_saving import ChosenMark, save_mark, withdraw_mark
from grader.marking.task_list import neighbor, next_unmarked, questions, task_lines, tasks_of_submission
from grader.results.session import ClassSession
from tests.marking.conftest import NOW, STUDENTS, TASKS, TEAM


def order(desk: Desk, target: str = "q6") -> list[str]:
    return [line.handle for line in task_lines(desk, target, "ta1", NOW)]


def next_of(desk: Desk, marker: str = "ta1", after: str = "", target: str = "q6") -> str | None:
    return next_unmarked(desk, target, marker, NOW, after=after)


def save(desk: Desk, handle: str, marker: str = "ta1", points: float = 3, target: str = "q6") -> None:
    save_mark(desk, target, handle, ChosenMark(points=points), marker, NOW, drawn_from=0)


def test_the_questions_are_the_parts_that_people_mark(desk: Desk) -> None:
    shown = {question.target: question for question in questions(desk, "ta1")}
    assert list(shown) == [
        "report_quality", "q6", "q7", "q8", "q9",
        "q10.image_to_output", "q10.patches_to_sequence", "q10.multi_head_attention", "q10.class_token",
    ]  # fmt: skip
    assert shown["q10.class_token"].title.endswith(desk.assignment.rubric[-1].parts[-1].title)
    assert {(one.tasks, one.marked, one.left) for one in shown.values()} == {(TASKS, 0, TASKS)}
    assert all(one.by_person for one in shown.values()) and shown["q6"].maximum == 5


def test_the_order_is_stable_and_differs_between_questions(desk: Desk) -> None:
    assert order(desk) == order(desk) and len(set(order(desk))) == TASKS
    assert order(desk) != order(desk, "q7") and set(order(desk)) == set(order(desk, "q7"))
    by_name = [handle_of(desk, student_id) for student_id in STUDENTS[:TASKS]]
    assert order(desk) not in (by_name, by_name[::-1])
    for handle in order(desk):
        assert not any(student_id in handle for student_id in STUDENTS)


def test_the_order_does_not_depend_on_when_things_were_graded(
    desk: Desk, tmp_path: Path, added: Callable[..., None], mark: Callable[..., Marked]
) -> None:
    before = order(desk)
    with desk.book.marking(writes=True) as records:
        records.tasks.replace([])
        records.tasks.set_basis(records.tasks.basis().__class__(0, 0, ""))
    added(mark(STUDENTS[3], "q6", 2.0))
    assert order(desk) == before


def test_next_goes_round_and_leaves_out_what_is_marked(desk: Desk) -> None:
    handles = order(desk)
    assert next_of(desk) == handles[0]
    save(desk, handles[0])
    assert next_of(desk) == next_of(desk, after=handles[0]) == handles[1]
    save(desk, handles[2])
    assert next_of(desk, after=handles[1]) == handles[3]
    assert next_of(desk, after=handles[-1]) == handles[1]
    for handle in handles:
        if handle not in (handles[0], handles[2], handles[5]):
            save(desk, handle)
    assert next_of(desk, after=handles[5]) == handles[5]
    save(desk, handles[5])
    assert next_of(desk) is None and next_of(desk, target="q7") is not None
    [shown] = [question for question in questions(desk, "ta1") if question.target == "q6"]
    assert (shown.marked, shown.left, shown.mine, shown.mine_left) == (TASKS, 0, TASKS, 0)


def test_a_withdrawn_mark_is_due_again(desk: Desk) -> None:
    [first, *_] = order(desk)
    version = save_mark(desk, "q6", first, ChosenMark(points=3), "ta1", NOW, drawn_from=0).version
    withdraw_mark(desk, "q6", first, "ta1", NOW, why="A slip.", drawn_from=version)
    assert next_of(desk) == first


def test_next_leaves_out_what_was_skipped_is_held_or_is_anothers(desk: Desk) -> None:
    a, b, c, d, *_ = order(desk)
    allocation.skip(desk, "q6", a, "ta1", NOW)
    presence.touch(desk, "q6", b, "ta2", NOW)
    allocation.hand_over(desk, "q6", c, "ta2", "ta1", NOW)
    assert next_of(desk) == d
    assert next_of(desk, "ta2") == a, "what one marker skipped is offered to others"
    assert next_of(desk, "ta3", after=a) == d
    later = NOW + presence.EXPIRES + timedelta(seconds=1)
    assert next_unmarked(desk, "q6", "ta1", later) == b, "nobody holds anything for ever"
    assert allocation.unskip(desk, "q6", "ta1") == 1
    assert next_of(desk) == a


def test_marks_that_come_by_commands_are_followed(
    desk: Desk, added: Callable[..., None], mark: Callable[..., Marked]
) -> None:
    """Those of a team by a mark for each of its members; the order is another one in each class."""
    first, second, *_ = order(desk)

    def given(handle: str, points: float | None) -> list[Marked]:
        return [mark(student_id, "q6", points) for student_id in students_of(desk, handle)]

    added(*given(first, 2.0), *given(second, 7.0))
    assert next_of(desk) == second, "more points than there are is no mark"
    lines = {line.handle: line for line in task_lines(desk, "q6", "ta1", NOW)}
    assert (lines[first].points, lines[first].marker) == (2.0, "ta9")
    added(*given(first, None))
    assert next_of(desk) == first


def test_a_ruling_ends_what_is_to_be_marked_and_a_new_run_does_not(
    desk: Desk, session: ClassSession, class_evidence: Callable[..., object]
) -> None:
    handles = order(desk)
    missing = class_evidence("400101299", missing=("report",))
    desk.book.record(missing, {})
    assert len(order(desk)) == TASKS + 1
    new = handle_of(desk, "400101299")
    assert [handle for handle in order(desk) if handle != new] == handles
    rule(session, ["400101299"], why="Nothing came.")
    assert order(desk) == handles
    with pytest.raises(UnknownTask):
        handle_of(desk, "400101299")


def test_a_class_with_many_new_runs_is_followed_as_a_whole(
    desk: Desk, class_evidence: Callable[..., object]
) -> None:
    assert len(order(desk)) == TASKS
    for number in range(25):
        desk.book.record(class_evidence(f"4001013{number:02}"), {})
    assert len(order(desk)) == TASKS + 25


def test_a_team_is_one_task(desk: Desk) -> None:
    handle = handle_of(desk, TEAM[1])
    assert handle == handle_of(desk, TEAM[0]) and students_of(desk, handle) == TEAM
    assert order(desk).count(handle) == 1
    save(desk, handle, points=4)
    lines = {line.handle: line for line in task_lines(desk, "q6", "ta1", NOW)}
    assert lines[handle].marked and lines[handle].points == 4
    marks = [(edit.student_id, edit.points) for edit in desk.book.edits() if isinstance(edit, Marked)]
    assert marks == [(TEAM[0], 4.0), (TEAM[1], 4.0)]


def test_a_team_is_left_while_a_member_has_no_mark(
    desk: Desk, added: Callable[..., None], mark: Callable[..., Marked]
) -> None:
    handle = handle_of(desk, TEAM[0])
    added(mark(TEAM[0], "q6", 4.0))
    lines = {line.handle: line for line in task_lines(desk, "q6", "ta1", NOW)}
    assert not lines[handle].marked
    with desk.book.marking() as records:
        version = records.tasks.task("q6", handle).given.mark
    save_mark(desk, "q6", handle, ChosenMark(points=4), "ta1", NOW, drawn_from=version)
    lines = {line.handle: line for line in task_lines(desk, "q6", "ta1", NOW)}
    assert lines[handle].marked


def test_neighbors_and_the_parts_of_a_submission(desk: Desk) -> None:
    handles = order(desk)
    assert neighbor(desk, "q6", handles[3], 1) == handles[4]
    assert neighbor(desk, "q6", handles[3], -2) == handles[1]
    assert neighbor(desk, "q6", handles[0], -1) is None and neighbor(desk, "q6", handles[-1], 1) is None
    assert tasks_of_submission(desk, handles[0])[:2] == ("report_quality", "q6")


def test_a_second_marker_gets_first_marks_first(desk: Desk) -> None:
    second_marking.choose_second(desk, "q6", 1.0, ["ta2"], NOW, by="head")
    assert next_of(desk, "ta2") == order(desk)[0], "there is nothing else for the second marker"
    second_marking.choose_second(desk, "q6", 0.0, ["ta2"], NOW, by="head")
    second_marking.choose_second(desk, "q6", 0.3, ["ta2"], NOW, by="head")
    seconds = [line.handle for line in task_lines(desk, "q6", "head", NOW) if line.second == "ta2"]
    assert len(seconds) == 3
    firsts = [handle for handle in order(desk) if handle not in seconds]
    assert next_of(desk, "ta2") == firsts[0]
    for handle in firsts:
        save(desk, handle, "ta2")
    assert next_of(desk, "ta2") == seconds[0]
    save(desk, seconds[0], "ta2")
    assert next_of(desk, "ta2") == seconds[1]
    assert next_of(desk, "ta1") == seconds[0], "a second mark is no mark"


@pytest.mark.parametrize(("target", "handle"), [("q66", ""), ("q6", "nobody"), ("q10", "")])
def test_what_does_not_exist_is_told(desk: Desk, target: str, handle: str) -> None:
    with pytest.raises(UnknownTask):
        next_unmarked(desk, target, "ta1", NOW, after=handle)


def test_the_list_survives_another_process(desk: Desk, other_book: Callable[[], Gradebook]) -> None:
    handles = order(desk)
    save(desk, handles[0])
    with other_book() as book:
        other = Desk(desk.out, book, desk.assignment)
        assert next_of(other) == handles[1]
        save(other, handles[1])
    assert next_of(desk) == handles[2]


def test_one_mark_reads_one_submission(
    desk: Desk, class_evidence: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the class is: what comes next is asked of the list of tasks alone."""
    handles = order(desk)
    texts: list[str] = []

    def counted(row: Any) -> Evidence:
        texts.append(row.student_id)
        return read_evidence(row)

    monkeypatch.setattr("grader.gradebook.row_records.read_evidence", counted)
    monkeypatch.setattr(Gradebook, "snapshot", None)
    assert next_of(desk) == handles[0] and texts == []
    team = handle_of(desk, TEAM[0])
    save(desk, next(handle for handle in handles if handle != team))
    assert len(texts) == 1
    desk.book.record(class_evidence("400101299"), {})
    assert len(order(desk)) == TASKS + 1 and texts[1:] == ["400101299"], "a new one is read alone"


def test_a_waiver_for_the_class_makes_the_list_anew(
    desk: Desk, added: Callable[..., None], class_evidence: Callable[..., object]
) -> None:
    handles = order(desk)
    added(Waived(who="head", when=NOW, why="Unclear.", check=desk.assignment.checks[0].id))
    assert order(desk) == handles


def test_a_submission_that_turns_out_to_be_anothers_keeps_its_handle(
    desk: Desk, added: Callable[..., None]
) -> None:
    handle = handle_of(desk, STUDENTS[0])
    save(desk, handle, points=2)
    owner = {"who": "head", "when": NOW, "why": "By mail.", "by_person": True, "held": False}
    desk.book.add_owner_edits([OwnerAssigned(student_id=STUDENTS[0], listed_as="400109999", **owner)])
    assert handle_of(desk, "400109999") == handle and students_of(desk, handle) == ("400109999",)
    lines = {line.handle: line for line in task_lines(desk, "q6", "ta1", NOW)}
    assert lines[handle].points == 2
    save(desk, handle, points=3, target="q7")
    assert [edit.points for edit in desk.book.edits("400109999") if isinstance(edit, Marked)] == [2, 3]
    assert desk.book.snapshot().totals["400109999"].who == "ta1"


def test_after_students_were_forgotten_the_tasks_are_listed_anew(
    desk: Desk, results: tuple[Path, str | None], class_evidence: Callable[..., Any]
) -> None:
    """A database gives the numbers of removed rows again: who comes then is listed all the same."""
    before = len(order(desk))
    records, forgotten = PersonalRecords(*results), frozenset(TEAM)
    records.forget(forgotten, records.persons().mentions(forgotten), who="head", when=NOW, files=0)
    records.close()
    newcomers = ("400101298", "400101299")
    for newcomer in newcomers:
        desk.book.record(class_evidence(newcomer), {})
    assert len(order(desk)) == before + 1
    assert {handle_of(desk, newcomer) for newcomer in newcomers} <= set(order(desk))
    with pytest.raises(UnknownTask):
        handle_of(desk, TEAM[0])
