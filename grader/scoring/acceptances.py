"""Files that were set aside, and that a person accepted all the same."""

from collections.abc import Sequence
from dataclasses import replace

from grader.domain.edit import Accepted, Edit
from grader.domain.evidence import Evidence
from grader.domain.score import Acceptance
from grader.domain.submission import Role


def acceptance(evidence: Evidence, edits: Sequence[Edit]) -> Acceptance | None:
    """The file that a person accepted as the report: while there is no other, and it was set aside."""
    if Role.REPORT not in evidence.missing:
        return None
    last = next((edit for edit in reversed(edits) if isinstance(edit, Accepted)), None)
    if last is None or last.file not in {file.name for file in evidence.refused_files}:
        return None
    return Acceptance(last.file, last.why)


def with_acceptance(evidence: Evidence, accepted: Acceptance | None) -> Evidence:
    """The evidence in which the file that was accepted is the report."""
    if accepted is None:
        return evidence
    return replace(
        evidence,
        missing=tuple(role for role in evidence.missing if role is not Role.REPORT),
        refused_files=tuple(file for file in evidence.refused_files if file.name != accepted.file),
    )
