"""What people decided about a submission besides the points of its items: the last word of each kind counts.

Checks that were given back, the accuracy that is claimed, whose the submission is, a file that was accepted,
the run that counts, what left for the student, and what becomes of one that cannot be graded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment
from grader.domain.edit import BY_PERSON, FELL, KEPT, UNOWNED, Edit, EditKind, standing_owner
from grader.domain.evidence import Evidence, Finding, Status
from grader.domain.program import Claim
from grader.domain.score import (
    Acceptance,
    GradeStatus,
    LowerRun,
    Ownership,
    Release,
    Score,
    ScoreEdit,
    Waiver,
)
from grader.domain.submission import Role
from grader.scoring.points import plain

TYPED = "typed by a person"  # students read it: `grader history` says by whom
RULED = (GradeStatus.INCOMPLETE, GradeStatus.REFUSED)  # what people rule on
_RULES = {EditKind.NO_GRADE: "0 points", EditKind.WAIVE_MISSING: "the total counts all the same"}
_ON_REFUSED = {EditKind.NO_GRADE: "No grade", EditKind.WAIVE_MISSING: "The rest counts all the same"}


def claimed(evidence: Evidence, edits: Sequence[Edit]) -> Claim | None:
    """The claim that counts.

    Args:
        evidence: With the claim that outputs or the report made, if any was found.
        edits: Those about the student, oldest first, of any kind. One without a value takes back what was
            typed before.
    """
    typed = [edit for edit in edits if edit.kind is EditKind.CLAIM]
    if typed and typed[-1].value is not None:
        return Claim(typed[-1].value, TYPED, typed[-1].why)
    return evidence.claim


def waived_checks(assignment: Assignment, edits: Sequence[Edit]) -> dict[str, Waiver]:
    """The waived checks of the assignment, each with who waived it and why.

    Args:
        edits: Oldest first; of each check, the last decision counts.
    """
    known = {check.id for check in assignment.checks}
    found: dict[str, Waiver] = {}
    for edit in edits:
        if edit.kind is EditKind.WAIVE and edit.target in known:
            found[edit.target] = Waiver(edit.who, edit.why.rstrip("."))
        elif edit.kind is EditKind.UNWAIVE:
            found.pop(edit.target, None)
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


def acceptance(evidence: Evidence, edits: Sequence[Edit]) -> Acceptance | None:
    """The file that a person accepted as the report: while there is no other, and it was set aside."""
    if Role.REPORT not in evidence.missing:
        return None
    last = next((edit for edit in reversed(edits) if edit.kind is EditKind.ACCEPTED), None)
    if last is None or last.target not in {file.name for file in evidence.refused_files}:
        return None
    return Acceptance(last.target, last.why)


def with_acceptance(evidence: Evidence, accepted: Acceptance | None) -> Evidence:
    """The evidence in which the file that was accepted is the report."""
    if accepted is None:
        return evidence
    return replace(
        evidence,
        missing=tuple(role for role in evidence.missing if role is not Role.REPORT),
        refused_files=tuple(file for file in evidence.refused_files if file.name != accepted.file),
    )


def ownership(edits: Sequence[Edit]) -> Ownership | None:
    """What was found out, or said, of whose a submission is.

    Args:
        edits: Those about it, oldest first, of any kind.
    """
    last = standing_owner(edits)
    if last is None:
        return None
    decided = last.kind in BY_PERSON
    reason = f"{last.who}: {last.why}" if decided else last.why
    return Ownership(last.kind in UNOWNED, decided, reason)


def lower_run(edits: Sequence[Edit]) -> LowerRun | None:
    """The run that gave less, until a person or a later run settles it.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    last = next((edit for edit in reversed(edits) if edit.kind is EditKind.RUN), None)
    return LowerRun(last.target == KEPT, last.why) if last and last.target in (KEPT, FELL) else None


def release(edits: Sequence[Edit]) -> Release | None:
    """When the grade left for the student first and last; None while it did not.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    found = [edit for edit in edits if edit.kind is EditKind.RELEASED]
    if not found:
        return None
    lines: dict[str, tuple[float, Edit]] = {}
    for edit in found:
        for target, points in edit.remarks:
            if points:
                lines.setdefault(target, (float(points), edit))
    whole = (
        (edit.value, edit.when)
        for edit in found
        if edit.value is not None and all(points for _, points in edit.remarks)
    )
    return Release(
        first=found[0].when,
        last=found[-1].when,
        points=found[-1].value,
        whole=next(whole, None),
        lines=tuple((target, points, edit.when) for target, (points, edit) in lines.items()),
    )


def line_points(score: Score) -> tuple[tuple[str, str], ...]:
    """The points of a score's lines and their parts, as an edit about a release keeps them.

    Of a line that is open there is nothing to keep but that.
    """
    targets = [(line.id, line.points) for line in score.lines]
    targets += [(f"{line.id}.{part.id}", part.points) for line in score.lines for part in line.parts]
    known = [(target, plain(points)) for target, points in targets if points is not None]
    return (*known, *((target, "") for target in (*score.awaiting, *score.not_run)))


@dataclass(frozen=True)
class RuledTotal:
    """The total of a submission: its points, why, and whether a rule decided them for good."""

    points: float | None
    reason: str
    closed: bool = False
    edits: tuple[ScoreEdit, ...] = ()


def rulings(status: GradeStatus, evidence: Evidence, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """What people said of just this submission, oldest first: the last one counts.

    It is about the files that they saw. What the student hands in later is judged anew.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    if status not in RULED:
        return ()  # a fault of the grader costs nobody points
    about = ("", evidence.submission_digest)
    return tuple(edit for edit in edits if edit.kind in _RULES and edit.target in about)


def lifts(ruled: Sequence[Edit]) -> bool:
    """Whether what there is counts, by the last ruling."""
    return bool(ruled) and ruled[-1].kind is EditKind.WAIVE_MISSING


def total_of(
    status: GradeStatus, reason: str, known: float, ruled: Sequence[Edit], *, decided: bool
) -> RuledTotal:
    """The sum of what is known where it counts, and what people decided about it.

    Args:
        reason: Why it is not graded as it should be.
        known: The sum of the lines with points.
        ruled: By `rulings`.
        decided: Every line has its points.
    """
    if status is GradeStatus.GRADED:
        return RuledTotal(known, reason)
    by_hand = decided and status is not GradeStatus.INCOMPLETE
    points, closed, told = known if by_hand else None, False, reason
    if by_hand:
        told = f"{reason} People gave the points of every item.".lstrip()
    elif status is GradeStatus.INCOMPLETE:
        told = f"{reason}: the total is withheld."
    edits = []
    for ruling in ruled:
        closed = ruling.kind is EditKind.NO_GRADE
        new = 0.0 if closed else known
        edits.append(ScoreEdit(ruling.who, ruling.when, ruling.why, points, new))
        points, why = new, ruling.why.rstrip(".")
        if status is GradeStatus.INCOMPLETE:
            told = f"{reason}: {_RULES[ruling.kind]} ({why})."
        else:
            told = f"{reason} {_ON_REFUSED[ruling.kind]}: {why}.".lstrip()
    return RuledTotal(points, told, closed, tuple(edits))
