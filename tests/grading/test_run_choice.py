"""Which run counts when a submission was examined again, and who is asked."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import LatePolicy
from grader.domain.edit import RunChosen
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.submission import Delivery, Submission
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook
from grader.grading.result_writer import Keeper
from grader.publishing.publication import open_reasons
from grader.publishing.releases import grade_of
from grader.results.class_files import write_class
from grader.results.current_state import results_now

NOW = datetime(2026, 2, 1, tzinfo=UTC)
STUDENT = "400101201"
Keep = Callable[..., Result]


@pytest.fixture
def good(class_evidence: Callable[..., Evidence]) -> Evidence:
    """What the class's book has of the student."""
    return class_evidence(STUDENT)


@pytest.fixture
def worse(assignment: Assignment, class_evidence: Callable[..., Evidence], good: Evidence) -> Evidence:
    """What another run of the same files found."""
    failed = [spec.id for spec in assignment.checks if spec.component == "Attention"]
    found = class_evidence(STUDENT, failed=failed)
    assert found.submission_digest == good.submission_digest
    return found


@pytest.fixture
def keep(assignment: Assignment, graded_class: Path) -> Keep:
    """Add a run to the book."""

    def kept(evidence: Evidence, *, allow_lower: bool = False) -> Result:
        with Gradebook(graded_class) as book:
            return Keeper(assignment, book, graded_class, "ta2", allow_lower).kept(evidence, {}, NOW)

    return kept


@pytest.fixture
def count(graded_class: Path, course_root: Path) -> Callable[..., Any]:
    """Say which run counts."""

    def said(*words: str) -> Any:
        given = ["count", str(graded_class), STUDENT, *words, "--why", "Read both.", "--by", "ta1"]
        return CliRunner().invoke(cli, [*given, "--course", str(course_root)], prog_name="grader")

    return said


def told(out: Path) -> float | None:
    with Gradebook(out) as book:
        return book.totals(STUDENT)[-1].points


def counting_result(assignment: Assignment, out: Path) -> Result:
    with Gradebook(out) as book:
        found = results_now(assignment, book.snapshot())
        own: Result = next(one for one in found if one.score.student_id == STUDENT)
        assert own.evidence == book.evidence(STUDENT), "whoever asks is told the same run"
        return own


def test_the_same_files_never_lower_a_total_by_themselves(
    assignment: Assignment, graded_class: Path, keep: Keep, good: Evidence, worse: Evidence
) -> None:
    """The new run is in the book, the old one counts, and a person is told."""
    before, report = told(graded_class), graded_class / "students" / STUDENT / "report.html"
    result = keep(worse)
    assert told(graded_class) == before == result.score.total
    assert result.evidence == good and result.score.lower is not None and result.score.lower.kept
    assert result == counting_result(assignment, graded_class)
    with Gradebook(graded_class) as book:
        assert book.runs(STUDENT) == (1, 2) and book.evidence(STUDENT, 2) == worse
        assert book.images(STUDENT) == {}
    assert f"{before:g}" in report.read_text("utf-8")
    reason = result.score.lower.reason
    assert "62 of 65 decided, 35 awaiting -> 54 of 65" in reason and reason.endswith("Run 1 counts.")
    # it holds nothing up: marks can go on, and nobody has lost anything
    assert "Examined again, the same files gave less" not in open_reasons(assignment, [result])


def test_a_failure_of_ours_leaves_the_run_before(
    assignment: Assignment, graded_class: Path, keep: Keep, good: Evidence
) -> None:
    keep(replace(good, status="engine_error", reason="The worker's host died.", findings=()))
    assert counting_result(assignment, graded_class).evidence == good


def test_a_run_that_gives_as_much_again_counts_and_settles_it(
    assignment: Assignment, graded_class: Path, keep: Keep, good: Evidence, worse: Evidence
) -> None:
    keep(worse)
    later = replace(good, graded_at=NOW + timedelta(days=1))
    assert keep(later).evidence == later
    found = counting_result(assignment, graded_class)
    assert found.evidence == later and found.score.lower is None


def test_a_later_attempt_that_is_worse_counts_and_holds_the_grades(
    assignment: Assignment, graded_class: Path, keep: Keep, worse: Evidence
) -> None:
    before = told(graded_class)
    attempt = replace(worse, submission_digest="another")
    result = keep(attempt)
    assert result.evidence == attempt and told(graded_class) == result.score.total
    assert before is not None and result.score.total is not None and result.score.total < before
    assert "A total that a student saw has fallen" in open_reasons(assignment, [result])
    assert "`grader count`" in grade_of(result.score).reason
    assert result.score.lower is not None and "A later attempt gives less" in result.score.lower.reason


def test_a_better_attempt_is_nothing_to_ask_about(keep: Keep, good: Evidence, worse: Evidence) -> None:
    keep(replace(worse, submission_digest="another"))
    result = keep(replace(good, submission_digest="third"))
    assert result.score.lower is None and result.evidence.submission_digest == "third"


def test_what_is_allowed_to_fall_falls(graded_class: Path, keep: Keep, worse: Evidence) -> None:
    result = keep(worse, allow_lower=True)
    assert result.evidence == worse and result.score.lower is None
    assert told(graded_class) == result.score.total


def test_a_person_takes_the_lower_run_only_when_that_is_allowed(
    assignment: Assignment,
    graded_class: Path,
    keep: Keep,
    count: Callable[..., Any],
    worse: Evidence,
    tmp_path: Path,
) -> None:
    keep(worse)
    released = CliRunner().invoke(
        cli,
        ["publish", str(graded_class), "--to", str(tmp_path / "published"), "--partial"],
        prog_name="grader",
    )
    assert released.exit_code == 0, released.output
    refused = count("latest")
    assert refused.exit_code == 2 and "--allow-lower" in refused.output
    done = count("latest", "--allow-lower")
    assert done.exit_code == 0 and "The latest run counts. 1 total changed." in done.output
    found = counting_result(assignment, graded_class)
    assert found.evidence == worse and found.score.lower is None
    assert told(graded_class) == found.score.total
    page = (graded_class / "index.html").read_text("utf-8")
    assert 'id="lower-run"' not in page


def test_an_attempt_that_a_person_chose_outlives_another_look_at_the_one_that_was_not(
    assignment: Assignment,
    graded_class: Path,
    keep: Keep,
    count: Callable[..., Any],
    good: Evidence,
    worse: Evidence,
) -> None:
    attempt = replace(worse, submission_digest="another")
    write_class(assignment, [keep(attempt)], graded_class, NOW)
    assert 'id="fallen"' in (graded_class / "index.html").read_text("utf-8")
    assert count("1").exit_code == 0
    assert counting_result(assignment, graded_class).evidence == good
    assert 'id="fallen"' not in (graded_class / "index.html").read_text("utf-8")
    assert keep(replace(attempt, engine="99")).evidence == good
    assert counting_result(assignment, graded_class).evidence == good
    third = replace(worse, submission_digest="third")
    assert keep(third).evidence == third, "what is handed in later counts"


def test_the_time_of_an_attempt_that_does_not_count_is_not_the_others(
    assignment: Assignment, graded_class: Path, keep: Keep, count: Callable[..., Any], good: Evidence
) -> None:
    keep(replace(good, submission_digest="another"))
    assert count("1").exit_code == 0
    late = Submission(STUDENT, "vit_defects", (), "another", delivery=Delivery(marked_late=True))
    with Gradebook(graded_class) as book:
        result = Keeper(assignment, book, graded_class, "ta2").earlier_result(late, NOW)
        assert len(book.runs(STUDENT)) == 2
    assert result.evidence == good


def test_a_run_that_is_not_there_cannot_count(count: Callable[..., Any]) -> None:
    done = count("7")
    assert done.exit_code == 2 and "There is no run '7'. Give one of 1, or latest." in done.output


def test_history_tells_which_run_counts(graded_class: Path, keep: Keep, worse: Evidence) -> None:
    keep(worse)
    done = CliRunner().invoke(cli, ["history", str(graded_class), STUDENT], prog_name="grader")
    assert "count" in done.output and "run 1 counts. The same files gave less" in done.output


def test_a_book_whose_run_was_chosen_knows_no_other(graded_class: Path, good: Evidence) -> None:
    """The choice is one of the student's own: others' runs stay as they are."""
    with Gradebook(graded_class) as book:
        book.record(replace(good, engine="2"), {})
        state = book.snapshot().state
        chosen = RunChosen(who="ta1", when=NOW, why="x", student_id=STUDENT, number=1)
        assert book.append([chosen], [], after=state)
        found = book.snapshot().evidence
        assert found[STUDENT].engine != "2" and len(found) == 4
        with pytest.raises(UsageError, match="There is no run 9"):
            book.evidence(STUDENT, 9)


def test_a_later_attempt_that_is_worth_less_after_lateness_is_asked_about(
    graded_class: Path, assignment: Assignment, good: Evidence
) -> None:
    """It counts and a person is asked; another time that the LMS says of the same files decides nothing."""
    due = replace(assignment, deadline=NOW, late=LatePolicy(points_per_day=2))
    with Gradebook(graded_class) as book:
        keeper = Keeper(due, book, graded_class, "ta2")
        keeper.kept(replace(good, received_at=NOW), {}, NOW)
        again = keeper.kept(replace(good, received_at=NOW + timedelta(days=1)), {}, NOW).score
        assert (again.total, again.final, again.lower) == (62, 60, None)
        worse = replace(good, submission_digest="later", received_at=NOW + timedelta(days=5))
        later = keeper.kept(worse, {}, NOW).score
        assert (later.total, later.final) == (62, 52) and later.lower is not None
        assert "62 of 65 decided, 35 awaiting, 60 after lateness -> " in later.lower.reason


def test_an_earlier_attempt_that_comes_again_does_not_count_again(
    keep: Keep, worse: Evidence, good: Evidence, graded_class: Path, assignment: Assignment
) -> None:
    """The class's download is graded again after a better upload came by mail."""
    keep(worse, allow_lower=True)
    mailed = keep(replace(good, submission_digest="mail"))
    again = keep(replace(worse, graded_at=NOW + timedelta(days=1)))
    assert again.score.total == mailed.score.total
    with Gradebook(graded_class) as book:
        found = {one.score.student_id: one.score for one in results_now(assignment, book.snapshot())}
        assert found[STUDENT].total == mailed.score.total, "the book says what was told"
        assert book.evidence(STUDENT).submission_digest == "mail"
    keep(replace(good, submission_digest="later"))
    with Gradebook(graded_class) as book:
        assert book.evidence(STUDENT).submission_digest == "later"
