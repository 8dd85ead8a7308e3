"""One resubmission after the deadline regains a share of what the first submission lost."""

from pathlib import Path

import pytest

from grader.domain.edit import Because, RunChosen
from grader.domain.errors import CourseError
from grader.domain.evidence import Blame, Finding, Status
from grader.domain.several_attempts import ResubmissionState
from grader.domain.submission import Delivery
from tests.scripted_terms import DAY, START, STUDENT, Term

LATE = "[late]\npoints_per_day = 10\n"
HALF = "[resubmission]\ndays = 7\nregains = 0.5\n"
LAB = "lab"


@pytest.fixture
def term(tmp_path: Path) -> Term:
    """One assignment of which half of the lost points can be won back within a week."""
    made = Term(tmp_path)
    made.course()
    made.assignment(LAB, START, LATE + HALF)
    return made


def points(term: Term) -> tuple[float, float | None]:
    """(the total, what is left of it after lateness)."""
    record = term.record(LAB)
    return record["total"], record["late"]["total_after"]


def test_half_of_what_was_lost_comes_back_and_nothing_is_late(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + 5 * DAY, 10)
    assert points(term) == (70, 70)
    record = term.record(LAB)["resubmission"]
    assert (record["state"], record["regains"], record["first"], record["resubmitted"]) == (
        *("counted", 0.5),
        *(40, 100),
    )
    assert term.record(LAB)["items"][0]["attempts"] == {"first": 40, "resubmitted": 100}


def test_the_report_shows_both_points_and_the_rule(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + DAY, 8)
    page = term.page(LAB)
    assert "Your resubmission counts" in page
    assert (
        "40 points before the deadline, 80 in the resubmission: 50 % of the points that it wins back" in page
    )
    head, row = (term.out(LAB) / "scores.csv").read_text().splitlines()
    cells = dict(zip(head.split(","), row.split(","), strict=True))
    assert (cells["before_deadline"], cells["resubmitted"], cells["total"]) == ("40", "80", "60")


def test_a_resubmission_takes_nothing_away(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 8)
    result = term.hand_in(LAB, START + DAY, 3)
    assert points(term) == (80, 80)
    assert result.score.lower is None, "nothing fell, so nobody is asked"


def test_the_last_attempt_before_the_deadline_is_the_first_of_two(term: Term) -> None:
    term.hand_in(LAB, START - 3 * DAY, 9)
    term.hand_in(LAB, START - DAY, 6)
    term.hand_in(LAB, START + DAY, 10)
    assert points(term) == (80, 80)


REFUSED = {"status": "refused", "reason": "The notebook cannot be read.", "findings": ()}


def test_an_upload_that_cannot_be_opened_does_not_take_the_place_of_the_first(term: Term) -> None:
    term.hand_in(LAB, START - 2 * DAY, 8)
    term.hand_in(LAB, START - DAY, 0, **REFUSED)
    term.hand_in(LAB, START + 3 * DAY, 9)
    assert points(term) == (85, 85)
    term.hand_in(LAB, START + 8 * DAY, 10)
    assert points(term) == (85, 85), "what comes too late changes nothing"


def test_what_came_too_late_leaves_the_attempt_that_has_points(term: Term) -> None:
    term.hand_in(LAB, START - 2 * DAY, 8)
    term.hand_in(LAB, START - DAY, 0, **REFUSED)
    term.hand_in(LAB, START + 8 * DAY, 10)
    assert points(term) == (80, 80)


def test_an_upload_without_points_is_no_submission_before_the_deadline(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 0, **REFUSED)
    term.hand_in(LAB, START + 8 * DAY, 10)
    assert points(term) == (100, 20), "the rule on late work applies, as without the upload"


def test_the_last_resubmission_counts_and_only_that(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 0)
    term.hand_in(LAB, START + DAY, 10)
    term.hand_in(LAB, START + 2 * DAY, 6)
    assert points(term) == (30, 30)


def test_without_a_submission_before_the_deadline_the_rule_on_late_work_applies(term: Term) -> None:
    term.hand_in(LAB, START + 2 * DAY, 10)
    assert points(term) == (100, 80)
    assert term.record(LAB)["resubmission"] is None


def test_what_comes_after_the_window_does_not_count(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    result = term.hand_in(LAB, START + 8 * DAY, 10)
    assert result.score.resubmission is not None
    assert result.score.resubmission.state is ResubmissionState.TOO_LATE
    assert points(term) == (40, 40)
    assert "A submission came too late to count" in term.page(LAB)
    with term.book(LAB) as book:
        assert book.counting(STUDENT) == 1 and book.runs(STUDENT) == (1, 2)


def test_what_comes_after_the_window_leaves_the_resubmission_as_it_was(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + DAY, 8)
    term.hand_in(LAB, START + 8 * DAY, 10)
    assert points(term) == (60, 60)


def test_a_changed_rule_is_applied_by_regrading(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + 8 * DAY, 10)
    term.assignment(LAB, START, LATE + HALF.replace("days = 7", "days = 9"))
    change = term.regrade(LAB).revision.changes
    assert [str(one) for one in change] == [f"{STUDENT}: 40 of 100 decided -> 70 of 100 decided"]
    term.assignment(LAB, START, LATE + HALF.replace("0.5", "0.25").replace("days = 7", "days = 9"))
    term.regrade(LAB)
    assert points(term) == (55, 55)
    term.assignment(LAB, START, LATE + HALF)
    term.regrade(LAB)
    assert points(term) == (40, 40), "the window was closed again"
    term.assignment(LAB, START, LATE)
    term.regrade(LAB)
    assert points(term) == (100, 20), "without the rule the latest attempt counts, eight days late"


def test_an_extension_moves_the_deadline_and_the_window(term: Term) -> None:
    term.hand_in(LAB, START + DAY, 4)
    term.hand_in(LAB, START + 8 * DAY, 10)
    assert points(term) == (100, 20), "nothing came before the deadline, so that it is late"
    term.regrade(LAB, extensions={STUDENT: START + 2 * DAY}, source="list.csv")
    assert points(term) == (70, 70)


def test_a_person_may_choose_the_attempt_that_came_too_late(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + 8 * DAY, 10)
    choice = RunChosen(who="ta1", when=START, why="Ill.", student_id=STUDENT, number=2)
    with term.book(LAB) as book:
        term.session(LAB, book).revised("count", decide=lambda *_: [choice])
    assert points(term) == (100, 20)
    term.regrade(LAB)
    assert points(term) == (100, 20), "a person's choice stays"


def test_a_date_may_end_resubmissions_for_everybody(term: Term) -> None:
    until = f"[resubmission]\nuntil = {(START + 3 * DAY).isoformat()}\nregains = 1.0\n"
    term.assignment(LAB, START, until)
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + 3 * DAY, 7)
    assert points(term) == (70, 70)
    term.hand_in(LAB, START + 4 * DAY, 10)
    assert points(term) == (70, 70)


def test_marks_of_both_attempts_follow_the_same_rule(term: Term) -> None:
    term.assignment(LAB, START, LATE + HALF, report=True)
    term.hand_in(LAB, START - DAY, 10)
    term.mark(LAB, 8)
    term.hand_in(LAB, START + DAY, 10)
    assert points(term) == (108, 108), "until somebody marks the new report, the mark stands"
    term.mark(LAB, 16)
    assert points(term) == (112, 112), "half of eight points"


def test_a_mark_that_the_first_never_had_stands_as_it_is(term: Term) -> None:
    term.assignment(LAB, START, LATE + HALF, report=True)
    term.hand_in(LAB, START - DAY, 10)
    term.hand_in(LAB, START + DAY, 10)
    term.mark(LAB, 16)
    assert points(term) == (116, 116)


def test_points_that_a_person_types_for_checks_stand_as_they_are(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + DAY, 8)
    term.mark(LAB, 90, item="parts")
    assert points(term) == (90, 90)


def test_a_resubmission_that_cannot_be_graded_costs_nothing(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + DAY, 0, status="refused", reason="No Python.", findings=())
    record = term.record(LAB)
    assert (record["status"], points(term)) == ("graded", (40, 40))
    assert record["resubmission"]["state"] == "unusable" and not record["resubmission"]["asked"]
    assert "Your resubmission could not be graded" in term.page(LAB)


def test_where_the_grader_failed_a_person_is_asked(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4)
    term.hand_in(LAB, START + DAY, 0, status="engine_error", reason="Broken.", findings=())
    assert term.record(LAB)["resubmission"]["asked"] and points(term) == (40, 40)
    assert "A resubmission that the grader failed on" in (term.out(LAB) / "index.html").read_text()


def test_what_is_undecided_in_the_first_is_left_to_a_person(term: Term) -> None:
    checks = [check.id for check in term.read(LAB).checks]
    broken = tuple(Finding(check, "work", check, Status.ERRORED, blame=Blame.INSTRUCTOR) for check in checks)
    term.hand_in(LAB, START - DAY, 0, findings=broken)
    term.hand_in(LAB, START + DAY, 10)
    assert term.record(LAB)["awaiting"] == ["parts"]
    assert "A person decides what the resubmission regains." in term.record(LAB)["items"][0]["reason"]


def test_the_same_files_handed_in_again_are_not_late(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 8, files="same")
    term.hand_in(LAB, START + 3 * DAY, 8, files="same")
    assert points(term) == (80, 80)
    term.hand_in(LAB, START + 8 * DAY, 8, files="same")
    assert points(term) == (80, 80), "nor after the window"


def test_the_first_attempt_stays_the_first_when_it_comes_again(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4, files="first")
    term.hand_in(LAB, START + DAY, 8, files="second")
    term.hand_in(LAB, START + 3 * DAY, 4, files="first")
    assert points(term) == (60, 60)


def test_which_attempt_was_graded_first_makes_no_difference(term: Term) -> None:
    term.hand_in(LAB, START + DAY, 8)
    assert points(term) == (80, 70)
    term.hand_in(LAB, START - DAY, 4)
    assert points(term) == (60, 60)
    with term.book(LAB) as book:
        chosen = [edit.because for edit in book.edits(STUDENT) if isinstance(edit, RunChosen)]
        assert chosen == [Because.CAME_BEFORE] and book.counting(STUDENT) == 1
    term.regrade(LAB)
    assert points(term) == (60, 60)
    term.assignment(LAB, START, LATE)
    term.regrade(LAB)
    assert points(term) == (80, 70), "without the rule the one that came last counts"


def test_an_upload_without_points_that_is_graded_last_takes_nothing_away(term: Term) -> None:
    term.hand_in(LAB, START + 8 * DAY, 10)
    term.hand_in(LAB, START - DAY, 0, **REFUSED)
    assert points(term) == (100, 20)


def test_a_deadline_that_was_given_with_a_later_attempt_is_that_of_the_earlier_one_too(term: Term) -> None:
    term.hand_in(LAB, START + DAY, 8)
    term.hand_in(LAB, START + 5 * DAY, 10, delivery=Delivery(extension=START + 2 * DAY))
    assert points(term) == (90, 90)


def test_without_the_rule_the_time_of_the_same_files_is_the_last_one(term: Term) -> None:
    term.assignment(LAB, START, LATE)
    term.hand_in(LAB, START - DAY, 8, files="same")
    term.hand_in(LAB, START + 3 * DAY, 8, files="same")
    assert points(term) == (80, 50)


def test_files_that_came_before_leave_the_score_as_it_is(term: Term) -> None:
    term.hand_in(LAB, START - DAY, 4, files="first")
    term.hand_in(LAB, START + DAY, 8, files="second")
    term.hand_in(LAB, START - DAY, 4, files="first")
    assert points(term) == (60, 60)
    with term.book(LAB) as book:
        chosen = [edit.because for edit in book.edits(STUDENT) if isinstance(edit, RunChosen)]
    assert chosen == [Because.CAME_AGAIN]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("regains = 0.5\n", "neither 'until' nor 'days'"),
        (f"regains = 0.5\ndays = 3\nuntil = {START.isoformat()}\n", "both 'until' and 'days'"),
        ("regains = 1.5\ndays = 3\n", "at most 1"),
        ("regains = 0.5\ndays = 0\n", "more than 0"),
        ("regains = 0.5\nuntil = 2026-04-01T00:00:00\n", "'until' has no time zone"),
        (f"regains = 0.5\nuntil = {START.isoformat()}\n", "is not after the deadline"),
        ("regain = 0.5\ndays = 3\n", "'regains'"),
    ],
)
def test_an_assignment_says_what_is_wrong_with_the_table(term: Term, table: str, told: str) -> None:
    term.assignment(LAB, START, f"[resubmission]\n{table}")
    with pytest.raises(CourseError, match=told):
        term.read(LAB)


def test_a_resubmission_needs_a_deadline(term: Term) -> None:
    path = term.root / "course" / "reference" / LAB / "assignment.toml"
    path.write_text(path.read_text().replace("deadline", "# deadline").replace(LATE, ""))
    with pytest.raises(CourseError, match=r"\[resubmission\] has no deadline to come after"):
        term.read(LAB)
