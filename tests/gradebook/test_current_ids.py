"""Whose a submission is changes what a row of the book is listed under, and no row."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.domain.edit import Edit, Marked, OwnerAssigned, RunChosen
from grader.domain.evidence import Evidence
from grader.domain.score import Total
from grader.domain.submission import Origin
from grader.gradebook import Gradebook
from grader.gradebook.statements import current_ids
from grader.gradebook.student_records import StudentRecords

NOW = datetime(2026, 1, 31, tzinfo=UTC)
A, B, S = "moodle-111", "moodle-222", "400101202"


def listed(row: str, listed_as: str, *, by_person: bool = False, held: bool = False) -> OwnerAssigned:
    return OwnerAssigned(
        who="ta1",
        when=NOW,
        why="why",
        student_id=row,
        listed_as=listed_as,
        by_person=by_person,
        held=held,
    )


def owner(row: str, student_id: str) -> OwnerAssigned:
    return listed(row, student_id, by_person=True)


def mark(row: str) -> Marked:
    return Marked(who="ta1", when=NOW, why="x", student_id=row, target="q6", points=2.0)


@pytest.mark.parametrize(
    ("edits", "shown", "current"),
    [
        ([], {A: A, B: B}, {A: A, B: B}),
        ([owner(A, S)], {A: S, B: B}, {S: A, B: B}),
        ([owner(A, S), owner(B, S)], {A: S, B: S}, {S: B}),
        ([owner(B, S), owner(A, S)], {A: S, B: S}, {S: A}),
        # what the grader finds out later does not outweigh a person's word, nor take its place
        ([owner(A, S), listed(A, A, held=True)], {A: S, B: B}, {S: A, B: B}),
        ([owner(A, S), listed(B, S)], {A: S, B: S}, {S: A}),
        ([listed(A, S), listed(B, S)], {A: S, B: S}, {S: B}),
        # the one before counts again when the later one is taken back
        (
            [owner(A, S), owner(B, S), listed(B, B, by_person=True, held=True)],
            {A: S, B: B},
            {S: A, B: B},
        ),
        ([owner("somebody", S)], {A: A, B: B}, {A: A, B: B}),
        ([mark(A)], {A: A, B: B}, {A: A, B: B}),
    ],
)
def test_under_which_id_a_row_is_listed(
    edits: list[Edit], shown: dict[str, str], current: dict[str, str]
) -> None:
    found = current_ids([B, A], edits)
    assert (found.id_by_row, found.row_by_id) == (shown, current)


@pytest.fixture
def book(tmp_path: Path, class_evidence: Callable[..., Any]) -> Gradebook:
    """Two uploads of which nobody knows whose they are, each with an image and a total."""
    made = Gradebook(tmp_path)
    for row in (A, B):
        evidence = class_evidence(row, origin=Origin(row, f"{row} in the zip", row, "Moodle", row[-3:]))
        total = Total(row, float(row[-1]), 65, 35, 100, "graded", "ta1", NOW, "grade")
        made.record(evidence, {"a.png": row.encode()}, who="ta1", total=total)
    made.add_owner_edits([listed(A, A, held=True), listed(B, B, held=True)])
    return made


def test_everything_about_a_submission_is_its_owners(book: Gradebook) -> None:
    before = book.snapshot()
    given = mark(A)
    assert book.append([given, owner(A, S)], [], after=before.state)
    after = book.snapshot()
    assert after.evidence.keys() == {S, B} == set(book.students())
    assert after.evidence[S] == book.evidence(S) == replace(before.evidence[A], student_id=S)
    assert book.images(S) == {"a.png": A.encode()} and book.runs(S) == (1,) and book.counting(S) == 1
    assert after.totals[S].points == book.totals(S)[-1].points == 1.0
    assert [type(edit) for edit in book.edits(S)] == [OwnerAssigned, Marked, OwnerAssigned]
    assert {edit.student_id for edit in after.edits} == {S, B}
    assert book.latest_facts().keys() == {S, B} and book.uploads() == after.uploads()
    assert after.changed_ids() == {A: S}
    expected = before.with_edits([given, owner(A, S)])
    assert (after.evidence, after.totals) == (expected.evidence, expected.totals)


def test_all_that_is_recorded_of_a_student_is_read_at_once(book: Gradebook, tmp_path: Path) -> None:
    other_book = Gradebook(tmp_path, assignment_id="another")
    other_book.record(
        Evidence(S, "another", "x", NOW),
        {},
        total=Total(S, 1.0, 1, 0, 1, "graded", "ta1", NOW, "grade", late_days_used=2),
    )
    assert book.append([mark(A), owner(A, S)], [], after=book.state())
    for attempts in (False, True):
        read = book.student_records(S, attempts=attempts)
        assert read.edits == book.edits(S) and [edit.student_id for edit in read.edits] == [S, S, S]
        assert read.history == book.student_history(S, attempts=attempts)
        assert read.history.late_days == (("another", 2),) and len(read.history.attempts) == attempts
        assert read.totals == book.totals(S) and [total.points for total in read.totals] == [1.0]
    assert Gradebook(tmp_path / "empty").student_records(S, attempts=True) == StudentRecords()


def test_what_comes_later_goes_to_the_same_row(book: Gradebook) -> None:
    book.add_owner_edits([owner(A, S)])
    again = replace(book.evidence(S), submission_digest="later", graded_at=NOW)
    total = Total(S, 9.0, 65, 35, 100, "graded", "ta1", NOW, "grade")
    chosen = RunChosen(who="ta1", when=NOW, why="x", student_id=S, number=2)
    assert book.record(again, {}, total=total, edits=[chosen]) == 2
    assert book.evidence(S) == again and book.totals(S)[-1].points == 9.0
    assert [run.submission_digest for run in book.run_records(S)] == ["ab12", "later"]
    assert book.snapshot().evidence.keys() == {S, B}
    book.add_owner_edits([listed(A, A, by_person=True, held=True)])
    assert book.evidence(A).submission_digest == "later", "all of it moves with the submission"


def test_an_id_that_another_row_began_with_gets_a_row_of_its_own(
    book: Gradebook, class_evidence: Callable[..., Any]
) -> None:
    first = class_evidence(S, origin=Origin("Moodle:333", "C", "moodle-333", "Moodle", "333"))
    book.record(first, {})
    book.add_owner_edits([listed(S, "moodle-333", held=True)])
    assert S not in book.students()
    other: Evidence = class_evidence(S, origin=Origin("Moodle:444", "D", "moodle-444", "Moodle", "444"))
    assert book.record(replace(other, submission_digest="other"), {}) == 1
    assert book.evidence(S).submission_digest == "other"
    assert book.evidence("moodle-333").submission_digest == "ab12"
    uploads = {one.row: one for one in book.snapshot().uploads()}
    assert (uploads[S].student_id, uploads[S].held) == ("moodle-333", True)
    assert (uploads["moodle-444"].student_id, uploads["moodle-444"].held) == (S, False)


def test_a_submission_that_does_not_count_is_still_known(book: Gradebook) -> None:
    book.add_owner_edits([owner(A, S), owner(B, S)])
    known = {one.row: (one.student_id, one.counts, one.decided) for one in book.snapshot().uploads()}
    assert known == {A: (S, False, True), B: (S, True, True)}
    assert book.students() == (S,) and book.evidence(S).origin.number == "222"
    assert book.snapshot().changed_ids() == {A: S, B: S}
