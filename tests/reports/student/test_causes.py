"""Each cause once: what is folded, and what says the same, is told under it."""

import pytest

from grader.domain.evidence import Blame, Finding, Status
from grader.domain.submission_result import reported_causes


def lost(
    check: str, message: str, because: str | None = None, status: Status = Status.FAILED, **more: str
) -> Finding:
    """A finding by which the student loses something."""
    return Finding(check, "Attention", check, status, Blame.STUDENT, None, message, because=because, **more)


def told(*findings: Finding) -> list[list[str]]:
    """The checks of each cause, that of the message first."""
    return [[finding.check for finding in cause.findings] for cause in reported_causes(findings)]


def test_what_is_folded_is_told_under_its_cause() -> None:
    """In the order of the causes, whatever stands between."""
    findings = (lost("a", "A."), lost("b", "B.", "a"), lost("c", "C."), lost("d", "D.", "a"))
    assert told(*findings) == [["a", "b", "d"], ["c"]]
    assert told(*reversed(findings)) == [["c"], ["a", "d", "b"]], "the cause first, wherever it stands"


def test_equal_messages_are_told_once() -> None:
    """With what is folded under any of them; of another status or another blame they are others."""
    same = (lost("a", "A."), lost("b", "A.", where="homework.py:9"), lost("c", "C.", "b"))
    assert told(*same) == [["a", "b", "c"]]
    assert told(lost("a", "A."), lost("b", "A.", status=Status.SKIPPED)) == [["a"], ["b"]]
    broken = Finding("b", "Attention", "b", Status.ERRORED, Blame.ENGINE, message="A.")
    assert told(broken, Finding("c", "Attention", "c", Status.ERRORED, Blame.INSTRUCTOR, message="A.")) == [
        ["b"],
        ["c"],
    ]


def test_a_cause_that_is_not_there_hides_nothing() -> None:
    """It passed meanwhile, is of another part, or is folded itself, which the judge never says."""
    assert told(lost("b", "B.", "gone"), lost("c", "C.", "gone")) == [["b"], ["c"]]
    passed = Finding("a", "Attention", "a", Status.PASSED, message="Look.", policy="x")
    assert told(passed, lost("b", "B.", "a")) == [["a"], ["b"]]
    chain = told(lost("a", "A."), lost("b", "B.", "a"), lost("c", "C.", "b"))
    assert sorted(check for cause in chain for check in cause) == ["a", "b", "c"]
    circle = told(lost("a", "A.", "b"), lost("b", "B.", "a"))
    assert sorted(check for cause in circle for check in cause) == ["a", "b"]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, ""),
        (1, "1\N{NO-BREAK SPACE}more check fails for this reason"),
        (3, "3\N{NO-BREAK SPACE}more checks fail for this reason"),
    ],
)
def test_how_many_more_there_are_is_said(count: int, words: str) -> None:
    others = [lost(f"b{number}", "B.", "a") for number in range(count)]
    [cause] = reported_causes([lost("a", "A."), *others])
    assert cause.others_in_words == words


def test_what_was_not_tried_is_not_said_to_fail() -> None:
    untried = [lost(name, "A.", status=Status.SKIPPED) for name in "ab"]
    [cause] = reported_causes(untried)
    assert cause.others_in_words == "1\N{NO-BREAK SPACE}more check was not tried for this reason"
