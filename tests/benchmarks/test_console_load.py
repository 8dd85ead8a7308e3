"""The benchmark of the console under load, with a class and a moment that are small."""

import pytest

from benchmarks import console_load
from benchmarks.console_load import make_class
from grader.domain.assignment import Assignment
from grader.domain.edit import Marked
from grader.gradebook import Gradebook


@pytest.mark.slow
def test_the_class_waits_for_marks(tmp_path, assignment: Assignment):
    make_class(assignment, tmp_path / "results", 3)
    with Gradebook(tmp_path / "results") as book:
        assert len(book.students()) == 3
        assert all(book.totals(student)[-1].awaiting for student in book.students())
    assert (tmp_path / "results" / "results.json").exists()


@pytest.mark.parametrize(
    ("values", "row"),
    [([], ("x", "0", "–", "–", "–")), ([1.0, 2.0, 6.0], ("x", "3", "2", "6", "6"))],
)
def test_a_row_has_the_median_and_the_longest(values, row):
    made = console_load._row("x", values)
    assert (made[0], made[1], made[2], made[4]) == (row[0], row[1], row[2], row[4])


@pytest.mark.slow
def test_no_mark_is_lost_when_the_server_is_killed(tmp_path, assignment: Assignment):
    make_class(assignment, tmp_path / "results", 12)
    targets = console_load.targets_of(assignment)
    seen = console_load._marked(tmp_path / "results", 3, 15.0, 1, targets=targets, thinking=0.2)
    with Gradebook(tmp_path / "results") as book:
        edits = [edit for edit in book.edits() if isinstance(edit, Marked)]
    comments = [edit.comment for edit in edits]
    assert seen.confirmed and seen.confirmed <= set(comments) and not seen.refused
    assert len(comments) == len(set(comments)) and set(comments) <= seen.tried
    assert len({edit.target for edit in edits}) > 1, "question after question"
