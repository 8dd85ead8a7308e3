"""Which rows there are to mark, and what stands beside them."""

from datetime import UTC, datetime

import pytest

from grader.decisions.mark_entries import Mark
from grader.decisions.marking_sheet import split_rows
from grader.domain.edit import Claimed, Ruled
from grader.domain.errors import UsageError
from grader.domain.submission import Answers
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper

PERSONS = ["report_quality", "q6", "q7", "q8", "q9"]
PARTS = ["image_to_output", "patches_to_sequence", "multi_head_attention", "class_token"]
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def test_there_is_a_row_for_each_item_or_part_that_a_person_marks(rows_with, assignment):
    rows = [row for row in rows_with() if row.student_id == "400101201"]
    assert [row.target for row in rows] == [*PERSONS, *(f"q10.{part}" for part in PARTS)]
    assert sum(row.maximum for row in rows) == 35
    assert {row.mark for row in rows} == {Mark()} and {row.marked_by for row in rows} == {""}
    assert rows[-1].title.endswith(": The class token") and rows[-1].maximum == 2.5


def test_what_the_grader_left_undecided_is_a_row_with_the_reason(rows_with):
    [training] = [row for row in rows_with() if row.target == "training"]
    assert training.student_id == "400101203" and training.maximum == 15
    assert training.evidence["note"].startswith("The grader's own limit stopped the training")


def test_the_evidence_stands_beside(rows_with):
    claim = Claimed(who="ta1", when=NOW, why="Page 3.", student_id="400101201", accuracy=0.72)
    row = rows_with(claim)[0]
    assert row.evidence == {
        "claimed_accuracy": "72.0 % (typed by a person)",
        "measured_accuracy": "70.0 %",
        "checkpoint_accuracy": "",
        "hyperparameters": "dim = 128",
        "note": "",
    }
    assert row.report == "students/400101201/report.html" and row.answers == ""


def test_the_pages_of_a_pdf_are_a_link_beside_the_report(graded_class, assignment, class_evidence, rows_with):
    evidence = class_evidence("400101205", answers=Answers("a.pdf", "ab", 1))
    with Gradebook(graded_class) as book:
        Keeper(assignment, book, graded_class, "ta1").kept(evidence, {}, NOW)
    links = {row.student_id: row.answers for row in rows_with()}
    assert links.pop("400101205") == "students/400101205/answers.html"
    assert set(links.values()) == {""}


def test_a_mark_stands_until_it_is_taken_back(rows_with, mark):
    remarks = (("no_locality", "Text."),)
    rows = rows_with(mark("400101201", "q6", 3, comment="Good.", remarks=remarks), mark("400101201", "q7", 4))
    by_target = {row.target: row for row in rows if row.student_id == "400101201"}
    assert by_target["q6"].mark == Mark(3, "Good.", ("no_locality",))
    assert (by_target["q6"].marked_by, by_target["q6"].awaiting) == ("ta1", False)
    rows = rows_with(mark("400101201", "q6", None, who="ta2"))
    again = next(row for row in rows if row.target == "q6")
    assert (again.mark, again.marked_by, again.awaiting) == (Mark(), "", True)


def test_no_grade_means_nothing_to_mark(rows_with):
    rule = Ruled(who="ta1", when=NOW, why="No report.", student_id="400101204", counts=False, digest=None)
    assert "400101204" in {row.student_id for row in rows_with()}
    assert "400101204" not in {row.student_id for row in rows_with(rule)}


def test_items_can_be_chosen(rows_with):
    chosen = {row.target for row in rows_with(items=["q6", "q10"])}
    assert chosen == {"q6", *(f"q10.{part}" for part in PARTS)}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_shares_are_whole_and_nobody_is_in_two(rows_with, count):
    rows = rows_with()
    shares = split_rows(rows, count)
    assert [row for share in shares for row in share] == rows
    students = [{row.student_id for row in share} for share in shares]
    assert all(students) and sum(map(len, students)) == 4


def test_more_shares_than_students_are_refused(rows_with):
    with pytest.raises(UsageError, match="There are 4 students to mark, too few for --split 5"):
        split_rows(rows_with(), 5)
