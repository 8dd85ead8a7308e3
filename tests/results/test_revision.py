"""Grades worked out again: nothing of what people decided is lost, and nothing is written for nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Marked, Waived
from grader.domain.errors import UsageError
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.publishing.releases import note_releases
from grader.results import class_pages, kept_scores
from grader.results.current_state import results_now
from grader.results.revision import Revision, revised

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
Q6 = Marked(
    who="ta1", when=NOW, why="Read.", student_id="400101201", target="q6", points=4.0, comment="Good."
)


@pytest.fixture
def revise(graded_class: Path, assignment: Assignment) -> Callable[..., Revision]:
    """`revise(*edits, **more)`: revise the example class."""

    def run(*edits: Edit, on: Assignment = assignment, **more: Any) -> Revision:
        given: dict[str, Any] = {"who": "ta1", "cause": "test", "clock": lambda: NOW, **more}
        if edits:
            given["decide"] = lambda *_: edits
        with Gradebook(graded_class) as book:
            return revised(on, book, graded_class, **given)

    return run


def files(out: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(out).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in out.rglob("*.*")
        if path.is_file()
        and path.suffix != ".sqlite"
        and path.name not in (class_pages.FILE, kept_scores.FILE)
    }


def test_marks_count_for_a_submission_that_comes_later(
    graded_class: Path,
    assignment: Assignment,
    revise: Callable[..., Revision],
    class_evidence: Callable[..., Any],
) -> None:
    check = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    revise(Q6, Waived(who="ta1", when=NOW, why="It was wrong.", check=check))
    with Gradebook(graded_class) as book:
        keeper = Keeper(assignment, book, graded_class, "ta2")
        result = keeper.kept(class_evidence("400101201", failed=[check]), {}, NOW)
        assert result.score.total == 66, "the mark and the waiver count"
        assert book.runs("400101201") == (1, 2)
        assert [total.who for total in book.totals("400101201")] == ["ta1", "ta1"], "nothing new was told"


def test_what_somebody_adds_meanwhile_is_taken_into_account(
    graded_class: Path, assignment: Assignment
) -> None:
    seen = []
    with Gradebook(graded_class) as book, Gradebook(graded_class) as other:

        def decide(snapshot: Any, results: Sequence[Result]) -> Sequence[Edit]:
            seen.append(len(snapshot.edits))
            if len(seen) == 1:
                assert other.append([replace(Q6, who="ta2", points=2.0)], [], after=other.snapshot().state)
            return [Q6]

        revised(assignment, book, graded_class, who="ta1", cause="x", clock=lambda: NOW, decide=decide)
        assert seen == [0, 1]
        assert [edit.who for edit in book.edits()] == ["ta2", "ta1"]


def test_a_book_that_never_rests_is_told(graded_class: Path, assignment: Assignment) -> None:
    with Gradebook(graded_class) as book, Gradebook(graded_class) as other:

        def decide(*_: object) -> Sequence[Edit]:
            other.append([Q6], [], after=other.snapshot().state)
            return [Q6]

        with pytest.raises(UsageError, match="Nothing was changed: run this again"):
            revised(assignment, book, graded_class, who="ta1", cause="x", clock=lambda: NOW, decide=decide)
        assert len(book.edits()) == 5


def test_only_what_says_something_else_is_written(
    graded_class: Path, revise: Callable[..., Revision]
) -> None:
    before = files(graded_class)
    revise(Q6)
    after = files(graded_class)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"students/400101201/report.html", "index.html", "scores.csv", "results.json"}
    revise(Waived(who="ta1", when=NOW, why="x", check="nothing", lifted=True))
    assert files(graded_class) == after
    revise()
    assert files(graded_class).keys() == after.keys()
    assert all(files(graded_class)[name][0] != after[name][0] for name in after), (
        "regrading writes everything"
    )


def test_a_total_that_vanishes_has_fallen(
    graded_class: Path, assignment: Assignment, class_evidence: Callable[..., Any]
) -> None:
    with Gradebook(graded_class) as book:
        refused = replace(class_evidence("400101201"), status="refused", reason="It is empty.")
        before = book.snapshot()
        told = results_now(assignment, before)
        grades = {result.score.student_id: result.score.final for result in told}
        left = {"way": "publish", "who": "ta1", "when": NOW, "out": graded_class}
        assert note_releases(book, before, told, grades, **left) == 4
        book.record(refused, {})
        with pytest.raises(
            UsageError, match="400101201: 62 of 65 decided, 35 awaiting -> refused, 0 decided"
        ):
            revised(assignment, book, graded_class, who="ta1", cause="x", clock=lambda: NOW)


def test_a_rubric_that_lost_an_item_is_told_and_loses_no_mark(
    assignment: Assignment, revise: Callable[..., Revision], graded_class: Path
) -> None:
    revise(Q6)
    without = replace(assignment, rubric=tuple(item for item in assignment.rubric if item.id != "q6"))
    revision = revise(on=without, allow_lower=True)
    assert revision.stray == ("q6",)
    assert str(revision.changes[0]) == (
        "400101201: 66 of 70 decided, 30 awaiting -> 62 of 65 decided, 30 awaiting"
    )
    assert str(revise().changes[0]).endswith("-> 66 of 70 decided, 30 awaiting")
