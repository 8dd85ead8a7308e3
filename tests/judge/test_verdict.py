"""How a check ended, and whose fault it is."""

import pytest

from grader.domain.assignment import CheckSpec
from grader.domain.errors import CourseError, EngineError
from grader.domain.evidence import Blame, Finding, Status
from grader.judge.verdict import finding, flagged, folded, skipped
from grader.kit import Mismatch, Undecided
from grader.protocol.link import WorkerFault

SPEC = CheckSpec("attention_matches_oracle", "Attention", "Attention is right.", file="test_attention.py")


@pytest.mark.parametrize(
    ("error", "status", "blame", "diagnosis"),
    [
        (None, Status.PASSED, None, None),
        (
            Mismatch("Wrong.", hint="Mend it.", diagnosis="missing_scale"),
            Status.FAILED,
            Blame.STUDENT,
            "missing_scale",
        ),
        (AssertionError("Wrong."), Status.FAILED, Blame.STUDENT, None),
        (WorkerFault("time", "no answer", 10.0), Status.FAILED, Blame.STUDENT, "hangs"),
        (WorkerFault("death", "it was killed"), Status.FAILED, Blame.STUDENT, "dies"),
        (WorkerFault("nonsense", "?"), Status.FAILED, Blame.STUDENT, "nonsense"),
        (Undecided("cannot tell"), Status.ERRORED, Blame.INSTRUCTOR, "undecided"),
        (KeyError("secret_value_42"), Status.ERRORED, Blame.INSTRUCTOR, None),
        (ZeroDivisionError(), Status.ERRORED, Blame.INSTRUCTOR, None),
        (CourseError("no reference"), Status.ERRORED, Blame.INSTRUCTOR, None),
        (EngineError("The worker failed."), Status.ERRORED, Blame.ENGINE, None),
    ],
)
def test_blame(
    error: BaseException | None, status: Status, blame: Blame | None, diagnosis: str | None
) -> None:
    """The table of DESIGN: what a student's code does is the student's, the rest costs nobody a point."""
    found = finding(SPEC, error, where="homework.py:3", seconds=0.5)
    assert (found.status, found.blame, found.diagnosis) == (status, blame, diagnosis)
    assert (found.check, found.component, found.title) == (SPEC.id, SPEC.component, SPEC.title)
    assert bool(found.message) == (status is not Status.PASSED)
    assert "secret_value_42" not in found.message


def test_the_better_place_wins() -> None:
    """A line that raised is a better place than the component's first."""
    assert (
        finding(SPEC, Mismatch("x", where="homework.py:41"), where="homework.py:3").where == "homework.py:41"
    )
    assert finding(SPEC, Mismatch("x"), where="homework.py:3").where == "homework.py:3"


def test_pytests_rewriting_is_taken_away() -> None:
    """Of an assertion only what its author wrote is shown."""
    rewritten = AssertionError("The shapes differ.\nassert (2, 3) == (2, 4)\n  At index 1 diff: 3 != 4")
    assert finding(SPEC, rewritten).message == "The shapes differ."
    bare = AssertionError("assert 0.123 == 0.456")
    assert finding(SPEC, bare).message == SPEC.title


def test_a_time_out_names_its_limit() -> None:
    """The student reads how long was waited."""
    assert "within 10 s" in finding(SPEC, WorkerFault("time", "", 10.0)).message


def test_skipped_for_our_own_reasons_costs_nothing() -> None:
    """A check that was not tried is the student's only when the student's code is the reason."""
    assert skipped(SPEC, "It hung.").status is Status.SKIPPED
    assert skipped(SPEC, "No time.", blame=Blame.ENGINE).status is Status.ERRORED


def test_the_worst_of_a_parametrized_check_counts() -> None:
    """Ours before the student's: what could not be decided is not counted as wrong."""

    def of(error: BaseException | None) -> Finding:
        return finding(SPEC, error)

    assert folded([of(None), of(Mismatch("x")), of(None)]).status is Status.FAILED
    assert folded([of(Mismatch("x")), of(Undecided("y"))]).status is Status.ERRORED
    assert folded([of(None), of(None)]).status is Status.PASSED


def test_what_the_course_must_mend_is_told_in_its_words_and_nothing_else_is() -> None:
    """A CourseError's sentence is ours; another exception's words may hold what is hidden."""
    sentence = "assignment.toml: [policies] has no 'stem', which a check asks for."
    found = finding(SPEC, CourseError(sentence))
    assert found.message == f"The check itself failed (test_attention.py): {sentence} It costs no points."
    other = finding(SPEC, ValueError(sentence))
    assert other.message == "The check itself failed (ValueError in test_attention.py). It costs no points."


def test_a_flag_is_told_only_where_the_check_passed() -> None:
    """The first policy is the diagnosis; every sentence is told, once."""
    passed = finding(SPEC, None, where="homework.py:3", seconds=0.5)
    assert flagged(passed, [], "homework.py:3") == passed
    flags = [("stem", "The stem is odd."), ("stem", "The stem is odd."), ("positions", "So are they.")]
    found = flagged(passed, flags, "homework.py:41")
    assert (found.status, found.blame, found.diagnosis) == (Status.PASSED, None, "stem")
    assert (found.message, found.where) == ("The stem is odd. So are they.", "homework.py:41")
    assert found.seconds == 0.5
    for error in (Mismatch("x"), Undecided("y")):
        assert flagged(finding(SPEC, error), flags, "homework.py:41") == finding(SPEC, error)


def test_a_flag_outlasts_the_cases_that_passed_without_one() -> None:
    """Of a parametrized check; and it is nothing beside a case that failed."""
    passed = finding(SPEC, None)
    noted = flagged(passed, [("stem", "The stem is odd.")], "")
    assert folded([passed, noted, passed]) == noted
    assert folded([noted, finding(SPEC, Mismatch("Wrong."))]).message == "Wrong."
