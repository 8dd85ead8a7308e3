"""Gradescope's `results.json` for one student, as an autograder would write it there.

By the autograder specifications: `score` at the top overrides the tests' sum; a test has `score`,
`max_score`, `name`, `number`, `output`, `tags`, `status` (`passed`, `failed`) and `visibility`. As long as a
scored test is hidden, the student's total is hidden too.
"""

import json
from collections.abc import Iterator
from typing import Any

from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.formatting import points, printable
from grader.domain.score import Score, ScoreLine
from grader.lms.export_format import Export, ExportFormat, Grade, Option, Order

FILE = "results.json"
HIDDEN = "hidden"
VISIBILITY = Option(
    "visibility",
    "When students see it.",
    values=(HIDDEN, "after_due_date", "after_published", "visible"),
    default="after_published",
)


def gradescope(order: Order) -> Export:
    """A `<student>/results.json` for each student whose grade is known."""
    grades, visibility = order.grades, order.choices.others[VISIBILITY.name]
    by_student = {score.student_id: (evidence, score) for evidence, score in order.results}
    known = {student_id: grade.points for student_id, grade in grades.items() if grade.points is not None}
    files = {
        f"{student_id}/{FILE}": gradescope_results(*by_student[student_id], grades[student_id], visibility)
        for student_id in known
    }
    left = [
        f"{grade.student_id}: is left out ({grade.reason})"
        for grade in grades.values()
        if grade.points is None
    ]
    return Export(files, len(files), tuple(left), {} if visibility == HIDDEN else known)


def gradescope_results(evidence: Evidence, score: Score, grade: Grade, visibility: str) -> bytes:
    """One student's `results.json`: the rubric items with their points, then every check without."""
    tests = [*_items(score, visibility), *_checks(evidence, _whys(score), visibility)]
    told = [f"{points(grade.points)} of {points(score.maximum)} points."]
    if score.late is not None and score.late.penalty:
        told.append(score.late.reason)
    if score.reason:
        told.append(score.reason)
    document = {
        "score": grade.points,
        "output": printable("\n".join(told)),
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {
            "student_id": score.student_id,
            "max_score": score.maximum,
            "submission_digest": evidence.submission_digest,
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode("utf-8")


def _items(score: Score, visibility: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(score.lines, 1):
        test = {
            "name": printable(line.title),
            "number": str(number),
            "score": line.points,
            "max_score": line.maximum,
            "output": printable("\n".join(_told(line))),
            "tags": [line.id],
            "visibility": visibility,
        }
        # a rule may close a total while nobody marked the item
        yield {key: value for key, value in test.items() if value is not None}


def _told(line: ScoreLine) -> Iterator[str]:
    if line.reason:
        yield line.reason
    for share in line.components:
        yield f"{share.component}: {points(share.points)} of {points(share.maximum)}. {share.reason}".rstrip()
    for part in line.parts:
        yield f"{part.title}: {points(part.points)} of {points(part.maximum)}"
        yield from part.comments
    yield from line.comments


def _whys(score: Score) -> dict[str, str]:
    """Why checks were given back to the class."""
    return {check: waiver.why for check, waiver in score.waived}


def _checks(evidence: Evidence, waived: dict[str, str], visibility: str) -> Iterator[dict[str, Any]]:
    titles = {finding.check: finding.title for finding in evidence.findings if finding.check not in waived}
    for finding in evidence.findings:
        cause = titles.get(finding.because or "", "")
        test: dict[str, Any] = {
            "name": printable(f"{finding.component}: {finding.title}"),
            "output": printable("\n".join(sentences(finding, waived.get(finding.check, ""), cause))),
            "tags": [finding.component, finding.check],
            "visibility": visibility,
        }
        if finding.status is Status.PASSED or finding.check in waived:
            test["status"] = "passed"
        elif finding.status is Status.FAILED:
            test["status"] = "failed"
        # what was not tried, and what is our fault, is neither
        yield test


def sentences(finding: Finding, waived: str = "", cause: str = "") -> Iterator[str]:
    """What a student reads about a check, line by line.

    Args:
        waived: Why it was given back to the class, if it was.
        cause: What the check that has its cause asks for, if one has: its message is told there.
    """
    if waived:
        yield f"Given back to the whole class: {waived}"
    if cause:
        yield f"For the same reason as: {cause}"
        return
    if finding.message:
        yield f"{finding.where}: {finding.message}" if finding.where else finding.message
    if finding.hint:
        yield finding.hint


RESULTS = ExportFormat(
    name="gradescope",
    help="""Write a Gradescope results.json for each student.

    Each is in the student's own folder. It lists the rubric's items from the results folder OUT with their
    points, then every check without points.

    \b
    Example:
      grader export gradescope results --visibility visible
    """,
    write=gradescope,
    options=(VISIBILITY,),
    noun="students",
    several=f"*/{FILE}",
)
