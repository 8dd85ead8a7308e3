"""`results.json` as PrairieLearn reads it: a share of the points from 0 to 1, and what public checks found.

PrairieLearn shows all of it at once and has no visibility for single tests, so hidden checks are told by the
items' points alone unless their feedback is shown. It keeps within PrairieLearn's megabyte. It never scores.
"""

import json
from collections.abc import Iterator
from typing import Any

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Status
from grader.domain.score import GradeStatus, Score
from grader.packages.reduced_run import TITLE, ReducedOutcome
from grader.packages.result_texts import ResultTexts, shows_hidden_checks

MOST_BYTES = 900_000  # PrairieLearn refuses what has more than 1,000,000
_SHORTEST = 200  # characters that are left of an output, where all of them are cut
_WORD = {Status.PASSED: "Passed.", Status.FAILED: "Failed."}


def prairielearn_document(
    assignment: Assignment, evidence: Evidence, score: Score, reduced: ReducedOutcome | None = None
) -> dict[str, Any]:
    """The document.

    The score is the share of those points that are decided here; what people mark is not part of it.

    Args:
        reduced: What a training on few examples tells the student; None: nothing was to be trained.
    """
    texts = ResultTexts(assignment, evidence, score)
    known = sum(line.points for line in score.lines if line.points is not None)
    share = min(max(known / score.decided, 0.0), 1.0) if score.decided else 0.0
    gradable = score.status not in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR)
    document: dict[str, Any] = {
        "gradable": gradable,
        "score": share if gradable else 0.0,
        "message": texts.text(texts.of_whole(with_points=True, code_alone=True)),
        "output": "",
        "tests": [*_items(texts), *_reduced_run(texts, reduced), *_checks(assignment, texts)],
    }
    if not gradable:
        document["format_errors"] = [texts.words(score.reason or "The submission cannot be graded.")]
    return _within_limit(document)


def _items(texts: ResultTexts) -> Iterator[dict[str, Any]]:
    for line in texts.score.lines:
        if line.points is None:
            continue  # what is open is no zero; the message names it
        yield {
            "name": texts.words(line.title),
            "points": line.points,
            "max_points": line.maximum,
            "output": texts.text(texts.of_line(line)),
        }


def _reduced_run(texts: ResultTexts, reduced: ReducedOutcome | None) -> Iterator[dict[str, Any]]:
    if reduced is not None:
        yield {"name": texts.words(TITLE), "output": texts.text(reduced.sentences)}


def _checks(assignment: Assignment, texts: ResultTexts) -> Iterator[dict[str, Any]]:
    at_once = shows_hidden_checks(texts.score)
    seen = {check.id for check in assignment.checks if check.public or at_once}
    for finding in texts.evidence.findings:
        if finding.check not in seen:
            continue
        sentences = [_WORD.get(finding.status, "Not decided."), *texts.of_finding(finding, seen)]
        yield {
            "name": texts.words(f"{finding.component}: {finding.title}"),
            "message": texts.text(sentences[:1]),
            "output": texts.text(sentences[1:]),
        }


def _within_limit(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with outputs cut where it would be too long."""
    if len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")) <= MOST_BYTES:
        return document
    tests = [{**test, "output": test["output"][:_SHORTEST]} for test in document["tests"]]
    return {**document, "message": document["message"][: 10 * _SHORTEST], "tests": tests}
