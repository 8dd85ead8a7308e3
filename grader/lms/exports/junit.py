"""JUnit XML: a suite for each student, a case for each check, for programs that show tests.

As Jenkins's schema (junit-10.xsd) has it, which is stricter than most readers: `testsuites` holds suites
and their sums without `skipped`; a suite has `properties` first, then cases; a case holds at most one of
`failure`, `error` and `skipped`. A failure is the student's, an error ours; what was not tried, or awaits a
person, is skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Status
from grader.domain.formatting import points, printable
from grader.domain.score import Score
from grader.lms.exports.filling import Export
from grader.lms.exports.grade import Results, exported_grades, owned, warnings
from grader.lms.exports.gradescope import sentences

_KINDS = {Status.FAILED: "failure", Status.ERRORED: "error", Status.SKIPPED: "skipped"}


@dataclass(frozen=True)
class _Case:
    component: str
    name: str
    seconds: float
    kind: str = ""
    message: str = ""
    text: str = ""
    type: str = ""


def junit(assignment: Assignment, results: Results, *, partial: bool) -> Export:
    """The findings of a class as one JUnit document.

    Args:
        partial: Items that await a person are skipped cases.

    Raises:
        UsageError: Something awaits a person, and that is not allowed.
    """
    grades = exported_grades(results, partial=partial)
    root = ElementTree.Element("testsuites", name=_said(assignment.id))
    sums = {"tests": 0, "failures": 0, "errors": 0}
    seconds = 0.0
    for evidence, score in sorted(owned(results), key=lambda one: one[1].student_id):
        cases = [*_checks(evidence, score), *_items(score)]
        counts = _counts(cases)
        own = sum(case.seconds for case in cases)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            {"name": _said(score.student_id), **{name: str(count) for name, count in counts.items()}},
            time=f"{own:.3f}",
            timestamp=f"{evidence.graded_at:%Y-%m-%dT%H:%M:%S}",
        )
        told = {"status": score.status.value, "maximum": points(score.maximum)}
        if grades[score.student_id].points is not None:
            told["grade"] = points(grades[score.student_id].points)
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in told.items():
            ElementTree.SubElement(properties, "property", name=name, value=value)
        for case in cases:
            _add(suite, score.student_id, case)
        sums = {name: count + counts[name] for name, count in sums.items()}
        seconds += own
    for name, count in sums.items():
        root.set(name, str(count))
    root.set("time", f"{seconds:.3f}")
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"
    waiting = tuple(f"{grade.student_id}: {grade.reason}" for grade in grades.values() if grade.reason)
    return Export(content, len(grades), (*waiting, *warnings(results)))


def _checks(evidence: Evidence, score: Score) -> Iterator[_Case]:
    waived = dict(score.waived)
    for finding in evidence.findings:
        kind = "" if finding.check in waived else _KINDS.get(finding.status, "")
        yield _Case(
            finding.component,
            finding.check,
            finding.seconds,
            kind,
            finding.title,
            "\n".join(sentences(finding)),
            finding.label or (finding.blame.value if finding.blame else ""),
        )
    if not evidence.findings and (evidence.reason or score.reason):
        kind = "error" if score.status == "engine_error" else "failure"
        yield _Case("submission", "is_gradable", 0.0, kind, score.reason or evidence.reason, "", score.status)


def _items(score: Score) -> Iterator[_Case]:
    for line in score.lines:
        if line.id in (*score.awaiting, *score.not_run):
            yield _Case("rubric", line.id, 0.0, "skipped", line.reason or "A person decides.")


def _counts(cases: list[_Case]) -> dict[str, int]:
    kinds = [case.kind for case in cases]
    return {
        "tests": len(cases),
        "failures": kinds.count("failure"),
        "errors": kinds.count("error"),
        "skipped": kinds.count("skipped"),
    }


def _add(suite: ElementTree.Element, student_id: str, case: _Case) -> None:
    element = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_said(f"{student_id}.{case.component}"),
        name=_said(case.name),
        time=f"{case.seconds:.3f}",
    )
    if case.kind:
        why = ElementTree.SubElement(element, case.kind, message=_said(case.message))
        if case.kind != "skipped" and case.type:
            why.set("type", _said(case.type))
        why.text = _said(case.text) or None


def _said(text: str) -> str:
    """The text as XML 1.0 can hold it: what it cannot say at all, `printable` shows by its number."""
    return printable(text)
