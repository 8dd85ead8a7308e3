"""`results.json` as Gradescope reads it: items with their points, then every check, each with its visibility.

It decides what students see at once and what when grades are published. By Gradescope's specification,
`score` at the top outranks the sum of the tests, and while a scored test is hidden no total is shown. It
never scores.
"""

from collections.abc import Iterator
from typing import Any

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.formatting import printable
from grader.domain.score import Score, ScoreLine
from grader.packages.reduced_run import TITLE, ReducedOutcome, Runs
from grader.packages.result_texts import ResultTexts, shows_hidden_checks

VISIBLE, PUBLISHED = "visible", "after_published"
_STATUS = {Runs.YES: "passed", Runs.NO: "failed"}
_NO_POINTS = {"name": "Nothing decided", "score": 0, "max_score": 0, "visibility": PUBLISHED}


def gradescope_document(
    assignment: Assignment,
    evidence: Evidence,
    score: Score,
    *,
    seconds: float,
    leaderboard: bool = False,
    reduced: ReducedOutcome | None = None,
) -> dict[str, Any]:
    """The document.

    Args:
        score: Its `tries` says whether hidden checks are shown at once; without it they wait.
        seconds: How long the run took.
        leaderboard: Add a line with how many public checks passed, without any name.
        reduced: What a training on few examples tells the student; None: nothing was to be trained.
    """
    texts, tests = ResultTexts(assignment, evidence, score), []
    at_once = shows_hidden_checks(score)
    tests += [_item(line, texts, _visibility_of_line(line, assignment, at_once)) for line in score.lines]
    if not any("score" in test for test in tests):
        tests.append(dict(_NO_POINTS))  # Gradescope needs a score somewhere
    if reduced is not None:
        tests.append(_reduced_run(reduced, texts))
    hidden = VISIBLE if at_once else PUBLISHED
    tests += _checks(assignment, texts, hidden)
    document: dict[str, Any] = {
        "output": texts.html(texts.of_whole(with_points=at_once or _all_is_public(assignment, score))),
        "output_format": "html",
        "test_output_format": "html",
        "execution_time": round(seconds),
        "visibility": VISIBLE,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": _for_staff(evidence, score, reduced),
    }
    if score.final is not None:
        document["score"] = score.final
    if leaderboard:
        document["leaderboard"] = _leaderboard(assignment, evidence)
    return document


def _visibility_of_line(line: ScoreLine, assignment: Assignment, at_once: bool) -> str:
    """Points that hidden checks, or hidden examples, have a part in would tell about these."""
    components = {share.component for share in line.components}
    hidden = any(check.component in components and not check.public for check in assignment.checks)
    return PUBLISHED if (hidden or _is_measured(line, assignment)) and not at_once else VISIBLE


def _is_measured(line: ScoreLine, assignment: Assignment) -> bool:
    """Whether a line has points by what was measured on hidden examples."""
    return line.points is not None and any(
        item.id == line.id and item.measured is not None for item in assignment.rubric
    )


def _all_is_public(assignment: Assignment, score: Score) -> bool:
    """Whether the points tell nothing about hidden checks and hidden examples."""
    measured = any(_is_measured(line, assignment) for line in score.lines)
    return not measured and all(check.public for check in assignment.checks)


def _item(line: ScoreLine, texts: ResultTexts, visibility: str) -> dict[str, Any]:
    test = {
        "name": texts.words(line.title),
        "score": line.points,
        "max_score": line.maximum,
        "output": texts.html(texts.of_line(line)),
        "tags": [line.id],
        "visibility": visibility,
        "extra_data": {"state": line.state.value},
    }
    if line.points is None:
        del test["score"]  # what is open is no zero
        del test["max_score"]
    return test


def _reduced_run(reduced: ReducedOutcome, texts: ResultTexts) -> dict[str, Any]:
    """Whether the training runs: for students, at once."""
    test = {
        "name": texts.words(TITLE),
        "output": texts.html(reduced.sentences),
        "tags": ["training", "reduced_run"],
        "visibility": VISIBLE,
    }
    if reduced.runs in _STATUS:
        test["status"] = _STATUS[reduced.runs]
    return test


def _checks(assignment: Assignment, texts: ResultTexts, hidden: str) -> Iterator[dict[str, Any]]:
    public = {check.id for check in assignment.checks if check.public}
    every = {check.id for check in assignment.checks}
    for finding in texts.evidence.findings:
        visible = finding.check in public or hidden == VISIBLE
        test = {
            "name": texts.words(f"{finding.component}: {finding.title}"),
            "output": texts.html(
                texts.of_finding(finding, public if visible and hidden != VISIBLE else every)
            ),
            "tags": [finding.component, finding.check],
            "visibility": VISIBLE if visible else hidden,
        }
        if finding.status in (Status.PASSED, Status.FAILED):
            test["status"] = finding.status.value
        # what was not tried, and what is our fault, is neither
        yield test


def _leaderboard(assignment: Assignment, evidence: Evidence) -> list[dict[str, Any]]:
    """Gradescope adds the name that the student chose."""
    public = {check.id for check in assignment.checks if check.public}
    passed = sum(_passed(finding) for finding in evidence.findings if finding.check in public)
    return [{"name": "Public checks passed", "value": passed}]


def _passed(finding: Finding) -> bool:
    return finding.status is Status.PASSED


def _for_staff(evidence: Evidence, score: Score, reduced: ReducedOutcome | None) -> dict[str, Any]:
    """What `grader grade` would say, but for points: no page of Gradescope's promises that it hides them."""
    attestation = evidence.attestation
    return {
        "status": score.status.value,
        "max_score": score.maximum,
        "awaiting": list(score.awaiting),
        "not_run": list(score.not_run),
        "reduced_run": reduced.runs.value if reduced is not None else None,
        "isolation": attestation.level,
        "layers": dict(attestation.layers or {}),
        "missing_layers": [printable(sentence) for sentence in attestation.missing],
        "engine": evidence.engine,
        "submission_digest": evidence.submission_digest,
    }
