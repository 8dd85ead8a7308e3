"""Checks that were given back to the whole class: they count as passed, for everybody."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Waived
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.score import Waiver


def waived_checks(assignment: Assignment, edits: Sequence[Edit]) -> dict[str, Waiver]:
    """The waived checks of the assignment, each with who waived it and why.

    Args:
        edits: Oldest first; of each check, the last decision counts.
    """
    known = {check.id for check in assignment.checks}
    found: dict[str, Waiver] = {}
    for edit in edits:
        match edit:
            case Waived(check=check, lifted=True):
                found.pop(check, None)
            case Waived(check=check) if check in known:
                found[check] = Waiver(edit.who, edit.why.rstrip("."))
    return found


def with_waived(assignment: Assignment, evidence: Evidence, waived: Mapping[str, Waiver]) -> Evidence:
    """The evidence as it counts: every waived check has passed, whatever it found.

    Args:
        waived: Check -> by whom and why.
    """
    if not waived:
        return evidence
    passed = {
        check.id: Finding(check.id, check.component, check.title, Status.PASSED)
        for check in assignment.checks
        if check.id in waived
    }
    there = dict.fromkeys(finding.check for finding in evidence.findings)
    findings = [finding for finding in evidence.findings if finding.check not in passed]
    at = {check: index for index, check in enumerate((*there, *(one for one in passed if one not in there)))}
    findings += passed.values()
    return replace(evidence, findings=tuple(sorted(findings, key=lambda finding: at[finding.check])))
