"""The checks of one part of a homework: what they come to, in a sentence and for programs."""

from typing import Any

from grader.cli.page import Page
from grader.domain.assignment import Assignment
from grader.domain.evidence import Status
from grader.domain.formatting import SPACE, counted, listed
from grader.domain.program import Omission
from grader.domain.quoting import named
from grader.students.own_check import LocalCheck
from grader.students.prospect import Outcome, Prospect, prospect


def show_part_verdict(page: Page, found: LocalCheck, assignment: Assignment, part: str) -> Outcome:
    """What hinders the checks of a part, and what they come to, in a sentence.

    Args:
        assignment: With the checks of the part alone.
    """
    hindrances = [
        *(_broken(left) for left in found.program.omissions),
        *(
            f"{named(name)}, which `{graded}` uses, is defined nowhere in the file."
            for graded, name in found.program.unresolved
        ),
    ]
    if hindrances:
        page.heading("Notes")
        for note in hindrances:
            page.item("note", note)
    known = prospect(assignment, found)
    page.verdict(known.outcome is Outcome.RIGHT, part_verdict(found, known, part))
    return known.outcome


def part_document(found: LocalCheck, assignment: Assignment, part: str) -> dict[str, Any]:
    """The same for programs."""
    known = prospect(assignment, found)
    told = part_verdict(found, known, part).replace(SPACE, " ")
    return {"part": part, "exit_code": int(known.outcome), "verdict": told}


def _broken(left: Omission) -> str:
    return f"{left.place}: {left.reason}."


def part_verdict(found: LocalCheck, known: Prospect, part: str) -> str:
    """The findings of a part in a sentence."""
    findings = found.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed == len(findings):
        one = passed == 1
        told = (
            f"The public check of `{part}` passes" if one else f"All {passed} public checks of `{part}` pass"
        )
        if known.forbidden:
            return (
                f"{told}, but {listed([named(name) for name in known.forbidden])} is not allowed: see above."
            )
        return f"{told}."
    text = f"{passed} of {counted(len(findings), 'public check')} of `{part}` pass."
    if ours := sum(finding.status is Status.ERRORED for finding in findings):
        text += f" {counted(ours, 'check')} could not be decided, which is not your fault."
    return text
