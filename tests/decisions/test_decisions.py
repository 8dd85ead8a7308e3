"""What people decide, through functions: no command, no spreadsheet, nothing printed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.decisions.corrections import (
    accept_file,
    choose_run,
    record_claim,
    record_in_time,
    record_received,
    regrade,
    waive_check,
)
from grader.decisions.last_word import rule
from grader.decisions.mark_entries import MarkField, MarkRefused
from grader.decisions.marking import NewMark, set_mark
from grader.decisions.upload_owner import decide_owner
from grader.domain.edit import Marked, RunChosen
from grader.domain.errors import UsageError
from grader.grading.result_writer import Keeper
from grader.results.class_pages import CatchUp, CatchUpOutcome
from grader.results.session import ClassSession, SessionRequest, class_session

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STUDENT, OTHER, WITHOUT_REPORT = "400101201", "400101202", "400101204"


@pytest.fixture
def notes() -> list[CatchUp]:
    """What sessions caught up with."""
    return []


@pytest.fixture
def session(graded_class: Path, course_root: Path, notes: list[CatchUp]) -> Iterator[ClassSession]:
    request = SessionRequest(graded_class, "ta1", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=notes.append) as opened:
        yield opened


@pytest.fixture
def dated(session: ClassSession) -> ClassSession:
    """A session about an assignment with a deadline."""
    return replace(session, assignment=replace(session.assignment, deadline=NOW - timedelta(days=2)))


def test_a_mark_is_given_with_types(session: ClassSession) -> None:
    given = set_mark(session, NewMark(STUDENT, "q6", 4.5, " Well \n argued. "))
    assert [(entry.student_id, entry.target, entry.mark.points) for entry in given.entries] == [
        (STUDENT, "q6", 4.5)
    ]
    assert given.notes == () and given.without_effect == ()
    (change,) = given.revision.changes
    assert change.before is not None and change.after.points == change.before.points + 4.5
    (edit,) = session.book.edits()
    assert (type(edit), edit.who, edit.when, edit.why, edit.sheet) == (
        Marked, "ta1", NOW, "Well argued.", "",
    )  # fmt: skip
    again = set_mark(session, NewMark(STUDENT, "q6", 4.5, "Well argued."))
    assert again.entries == () and again.revision.changes == () and len(session.book.edits()) == 1
    back = set_mark(session, NewMark(STUDENT, "q6", None, "It was another's."))
    assert back.revision.changes[0].after.points == change.before.points


def test_a_mark_that_one_got_alone_can_be_given_to_the_team(
    session: ClassSession, class_evidence: Any
) -> None:
    keeper = Keeper(session.assignment, session.book, session.out, "ta1")
    for student in (STUDENT, OTHER):
        evidence = class_evidence(student, team=(STUDENT, OTHER))
        keeper.kept(replace(evidence, submission_digest="theirs"), {}, NOW)
    new = NewMark(STUDENT, "q6", 4.5, "Well argued.")
    assert len(set_mark(session, replace(new, alone=True)).entries) == 1
    assert set_mark(session, replace(new, alone=True)).entries == ()
    given = set_mark(session, new)
    assert [str(entry) for entry in given.entries] == [f"{OTHER} q6: no mark -> 4.5"]
    assert [change.after.student_id for change in given.revision.changes] == [OTHER]
    assert set_mark(session, new).entries == () and len(session.book.edits()) == 2
    set_mark(session, replace(new, student_id=OTHER, points=3.0, alone=True))
    kept = set_mark(session, new)
    assert kept.entries == () and "keeps 3 for 'q6'" in str(kept.notes[0]), "who has another mark keeps it"


def test_a_mark_takes_comments_of_the_bank(session: ClassSession) -> None:
    set_mark(session, NewMark(STUDENT, "q8", 2, "See below.", remarks=("no_locality",)))
    (edit,) = session.book.edits()
    bank = {remark.id: remark.text for remark in session.assignment.remarks}
    assert edit.remarks == (("no_locality", bank["no_locality"]),)


@pytest.mark.parametrize(
    ("new", "fields"),
    [
        (NewMark("4001", "q6", 3, "x"), [MarkField.STUDENT]),
        (NewMark("", "q6", 3, "x"), [MarkField.STUDENT]),
        (NewMark(STUDENT, "q66", 3, "x"), [MarkField.ITEM]),
        (NewMark(STUDENT, "q10", 3, "x"), [MarkField.ITEM]),
        (NewMark(STUDENT, "q6", 5.1, "x"), [MarkField.POINTS]),
        (NewMark(STUDENT, "q6", -1, "x"), [MarkField.POINTS]),
        (NewMark(STUDENT, "q6", float("nan"), "x"), [MarkField.POINTS]),
        (NewMark(STUDENT, "q6", float("inf"), "x"), [MarkField.POINTS]),
        (NewMark(STUDENT, "q6", 3, "x" * 5001), [MarkField.COMMENT]),
        (NewMark(STUDENT, "q6", 3, "x", remarks=("nonsense",)), [MarkField.REMARKS]),
        (NewMark("4001", "q66", 3, "x"), [MarkField.STUDENT, MarkField.ITEM]),
    ],
)
def test_what_is_wrong_with_a_mark_is_a_field(
    session: ClassSession, new: NewMark, fields: list[MarkField]
) -> None:
    with pytest.raises(MarkRefused) as caught:
        set_mark(session, new)
    assert [fault.field for fault in caught.value.faults] == fields
    assert session.book.edits() == ()


@pytest.mark.parametrize(
    "decide",
    [
        lambda session: set_mark(session, NewMark(STUDENT, "q6", 3, " ")),
        lambda session: waive_check(session, session.assignment.checks[0].id, why=""),
        lambda session: choose_run(session, STUDENT, None, why="\t"),
        lambda session: record_claim(session, STUDENT, 0.8, why=""),
        lambda session: accept_file(session, WITHOUT_REPORT, None, why=""),
        lambda session: record_received(session, STUDENT, NOW, why=""),
        lambda session: record_in_time(session, STUDENT, why=""),
        lambda session: rule(session, [WITHOUT_REPORT], why=""),
        lambda session: decide_owner(session, STUDENT, "400101299", why=""),
    ],
)
def test_nothing_is_decided_without_a_reason(
    session: ClassSession, decide: Callable[[ClassSession], Any]
) -> None:
    with pytest.raises(UsageError, match="Say why"):
        decide(session)
    assert session.book.edits() == ()


def test_a_waived_check_counts_for_everybody(session: ClassSession) -> None:
    check = next(spec.id for spec in session.assignment.checks if spec.component == "Attention")
    waived = waive_check(session, f"test_{check}", why="The handout did not ask for it.")
    assert waived.check == check
    assert [change.after.student_id for change in waived.revision.changes] == [OTHER]
    undone = waive_check(session, check, why="It did.", undo=True)
    assert undone.revision.changes[0].lowers is False, "nothing was released"
    with pytest.raises(UsageError, match="has no check"):
        waive_check(session, "nonsense", why="x")


def test_a_run_is_chosen(session: ClassSession) -> None:
    assert choose_run(session, STUDENT, None, why="The last one counts.").number == 1
    [edit] = session.book.edits()
    assert isinstance(edit, RunChosen) and edit.number == 1
    with pytest.raises(UsageError, match=r"There is no run '7'\. Give one of 1, or latest\."):
        choose_run(session, STUDENT, 7, why="x")


def test_a_claim_is_recorded_and_taken_back(session: ClassSession) -> None:
    claimed = record_claim(session, STUDENT, 0.835, why="page 3").score(STUDENT).claim
    assert claimed is not None and claimed.accuracy == 0.835
    assert record_claim(session, STUDENT, None, why="Another model.").score(STUDENT).claim is None
    with pytest.raises(UsageError, match="no student 'x'"):
        record_claim(session, "x", 0.8, why="x")


def test_when_it_came(dated: ClassSession) -> None:
    late = record_received(dated, STUDENT, NOW, why="SpeedGrader says so.").late
    assert late is not None and late.received_at == NOW and late.state == "late"
    in_time = record_in_time(dated, STUDENT, why="By mail.").late
    assert in_time is not None and in_time.state == "in_time"
    before = record_received(dated, STUDENT, None, why="A mistake.").late
    assert before is not None and before.state == "unknown"


def test_extensions_are_given_once(dated: ClassSession) -> None:
    deadlines = {STUDENT: NOW, "400109999": NOW}
    done = regrade(dated, extensions=deadlines, source="list.csv")
    assert (done.extensions, done.unknown) == (1, ("400109999",))
    assert dated.book.edits()[0].why == "An extension, by list.csv."
    assert regrade(dated, extensions=deadlines).extensions == 0
    zeros = regrade(dated, extensions={f"00{student}": due for student, due in deadlines.items()})
    assert (zeros.extensions, zeros.unknown) == (0, ("00400109999",)), "the same students, however written"
    assert regrade(dated).extensions == 0


def test_the_last_word(session: ClassSession) -> None:
    word = rule(session, None, why="One missing file means no grade.")
    assert word.students == (WITHOUT_REPORT,) and word.revision.score(WITHOUT_REPORT).total == 0
    lifted = rule(session, [WITHOUT_REPORT], lift=True, why="It counts this once.")
    assert (lifted.revision.score(WITHOUT_REPORT).total or 0) > 0
    with pytest.raises(UsageError, match="is complete"):
        rule(session, [STUDENT], why="x")


def test_marks_of_whom_a_rule_is_about_are_without_effect(session: ClassSession) -> None:
    rule(session, None, why="One missing file means no grade.")
    given = set_mark(session, NewMark(WITHOUT_REPORT, "q6", 4, "Good."))
    assert given.without_effect == (WITHOUT_REPORT,)


def test_an_upload_is_somebody_elses(session: ClassSession) -> None:
    said = decide_owner(session, STUDENT, "400101299", why="She says so.")
    assert said.owner.student_id == "400101299" and said.revision.score("400101299").total is not None
    with pytest.raises(UsageError, match="has a submission already"):
        decide_owner(session, OTHER, "400101299", why="x")
    replaced = decide_owner(session, OTHER, "400101299", why="x", replaces_current=True)
    assert replaced.owner.displaced is not None


def test_a_file_that_was_not_set_aside_is_not_accepted(session: ClassSession) -> None:
    with pytest.raises(UsageError, match="Nothing of theirs was set aside"):
        accept_file(session, WITHOUT_REPORT, "report.docx", why="x")


def test_a_session_writes_what_is_older_than_the_book_and_says_so(
    session: ClassSession, graded_class: Path, course_root: Path, notes: list[CatchUp]
) -> None:
    set_mark(session, NewMark(STUDENT, "q6", 4, "Good."))
    assert notes == []
    (graded_class / "results.json").unlink()
    request = SessionRequest(graded_class, "ta2", course=course_root)
    with class_session(request, clock=lambda: NOW, on_catch_up=notes.append):
        pass
    (note,) = notes
    assert note.outcome is CatchUpOutcome.WRITTEN and (graded_class / "results.json").exists()


def test_a_session_needs_a_gradebook(tmp_path: Path, course_root: Path, notes: list[CatchUp]) -> None:
    request = SessionRequest(tmp_path, "ta1", course=course_root)
    with (
        pytest.raises(UsageError, match="there is no gradebook in it"),
        class_session(request, clock=lambda: NOW, on_catch_up=notes.append),
    ):
        pass
