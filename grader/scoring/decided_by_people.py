"""What people decided about a submission besides the points of its items: the last word of each kind counts.

Checks that were given back, the accuracy that is claimed, whose the submission is, a file that was accepted,
the run that counts, what left for the student, and what becomes of one that cannot be graded.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment
from grader.domain.edit import (
    Accepted,
    Because,
    Claimed,
    Edit,
    Released,
    Ruled,
    RunChosen,
    Waived,
    standing_owner,
)
from grader.domain.evidence import Blame, Evidence, Finding, Status
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
    rounded,
)
from grader.domain.submission import Role

TYPED = "typed by a person"  # students read it: `grader history` says by whom
RULED = (GradeStatus.INCOMPLETE, GradeStatus.REFUSED)  # what people rule on
# whether what there is counts -> what is said of it
_RULES = {False: "0 points", True: "the total counts all the same"}
_ON_REFUSED = {False: "No grade", True: "The rest counts all the same"}


def claimed(evidence: Evidence, edits: Sequence[Edit]) -> Claim | None:
    """The claim that counts.

    Args:
        evidence: With the claim that outputs or the report made, if any was found.
        edits: Those about the student, oldest first, of any kind. One without a value takes back what was
            typed before.
    """
    typed = [edit for edit in edits if isinstance(edit, Claimed)]
    if typed and typed[-1].accuracy is not None:
        return Claim(typed[-1].accuracy, TYPED, typed[-1].why)
    return evidence.claim


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

    What was folded under one that is waived stands by itself, and what was not tried because of one is
    unknown: nobody can say any more that the student lost it.

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
    findings = [_by_itself(one, passed) for one in evidence.findings if one.check not in passed]
    at = {check: index for index, check in enumerate((*there, *(one for one in passed if one not in there)))}
    findings += passed.values()
    return replace(evidence, findings=tuple(sorted(findings, key=lambda finding: at[finding.check])))


def _by_itself(finding: Finding, waived: Collection[str]) -> Finding:
    """A finding as it stands where the check that has its cause is waived; any other as it is."""
    if finding.because not in waived:
        return finding
    if finding.status is not Status.SKIPPED:
        return replace(finding, because=None)
    told = f"It was not tried because of `{finding.because}`, which was given back to the class."
    return replace(
        finding, because=None, status=Status.ERRORED, blame=Blame.INSTRUCTOR, message=told, hint=""
    )


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
        missing=tuple(role for role in evidence.missing if role != Role.REPORT),
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
    reason = f"{last.who}: {last.why}" if last.by_person else last.why
    return Ownership(last.held, last.by_person, reason)


def lower_run(edits: Sequence[Edit]) -> LowerRun | None:
    """The run that gave less, until a person or a later run settles it.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    last = next((edit for edit in reversed(edits) if isinstance(edit, RunChosen)), None)
    return LowerRun(last.because is Because.KEPT, last.reason) if last and last.has_fallen else None


def release(edits: Sequence[Edit]) -> Release | None:
    """When the grade left for the student first and last; None while it did not.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    found = [edit for edit in edits if isinstance(edit, Released)]
    if not found:
        return None
    lines: dict[str, tuple[float, Released]] = {}
    for edit in found:
        for target, points in edit.lines:
            if points is not None:
                lines.setdefault(target, (points, edit))
    whole = (
        (edit.points, edit.when)
        for edit in found
        if edit.points is not None and all(points is not None for _, points in edit.lines)
    )
    return Release(
        first=found[0].when,
        last=found[-1].when,
        points=found[-1].points,
        whole=next(whole, None),
        lines=tuple((target, points, edit.when) for target, (points, edit) in lines.items()),
    )


def line_points(score: Score) -> tuple[tuple[str, float | None], ...]:
    """The points of a score's lines and their parts, as a release keeps them; None of a line that is open."""
    targets = [(line.id, line.points) for line in score.lines]
    targets += [(f"{line.id}.{part.id}", part.points) for line in score.lines for part in line.parts]
    known = [(target, rounded(points)) for target, points in targets if points is not None]
    return (*known, *((target, None) for target in (*score.awaiting, *score.not_run)))


@dataclass(frozen=True)
class RuledTotal:
    """The total of a submission: its points, why, and whether a rule decided them for good."""

    points: float | None
    reason: str
    closed: bool = False
    edits: tuple[ScoreEdit, ...] = ()


def rulings(status: GradeStatus, evidence: Evidence, edits: Sequence[Edit]) -> tuple[Ruled, ...]:
    """What people said of just this submission, oldest first: the last one counts.

    It is about the files that they saw. What the student hands in later is judged anew.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    if status not in RULED:
        return ()  # a fault of the grader costs nobody points
    about = (None, evidence.submission_digest)
    return tuple(edit for edit in edits if isinstance(edit, Ruled) and edit.digest in about)


def lifts(ruled: Sequence[Ruled]) -> bool:
    """Whether what there is counts, by the last ruling."""
    return bool(ruled) and ruled[-1].counts


def total_of(
    status: GradeStatus, reason: str, known: float, ruled: Sequence[Ruled], *, decided: bool
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
        closed = not ruling.counts
        new = 0.0 if closed else known
        edits.append(ScoreEdit(ruling.who, ruling.when, ruling.why, points, new))
        points, why = new, ruling.why.rstrip(".")
        if status is GradeStatus.INCOMPLETE:
            told = f"{reason}: {_RULES[ruling.counts]} ({why})."
        else:
            told = f"{reason} {_ON_REFUSED[ruling.counts]}: {why}.".lstrip()
    return RuledTotal(points, told, closed, tuple(edits))
