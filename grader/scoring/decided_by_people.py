"""What people decided about a submission and about the points of its items.

The last word of each kind counts: checks that were given back, the accuracy that is claimed, whose the
submission is, a file that was accepted, the run that counts, what has been released to the student, and
what becomes of a submission that cannot be graded. Marks of people go over what the evidence says of an
item. It never says who may decide.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.domain.analyzed_program import Claim
from grader.domain.assignment import Assignment, RubricItem, part_target
from grader.domain.edit import (
    Accepted,
    Because,
    Claimed,
    Edit,
    Marked,
    Released,
    Ruled,
    RunChosen,
    Waived,
    standing_owner,
)
from grader.domain.evidence import Blame, Evidence, Finding, Status
from grader.domain.score import (
    Acceptance,
    GradeStatus,
    LineState,
    LowerRun,
    Ownership,
    PartScore,
    Release,
    Score,
    ScoreEdit,
    ScoreLine,
    Waiver,
    rounded,
)
from grader.domain.submission import Role
from grader.scoring.measurements import plain

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
    """When the grade was released to the student first and last; None while it was not.

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


# --- marked lines ----------------------------------------------------------------------------------------


MARKED = "Marked by a person."
ToldMark = tuple[Marked, bool]


@dataclass(frozen=True)
class Marks:
    """The marks of one item or part, replayed.

    Attributes:
        points: What counts now; None when there is no mark, or none that fits the rubric.
        marked: Somebody's mark stands.
        comments: What the student is told with it; of a mark that was taken back after a release, why.
        fault: Why a mark does not count any more, in a sentence.
        edits: All of them, oldest first.
    """

    points: float | None
    marked: bool
    comments: tuple[str, ...] = ()
    fault: str = ""
    edits: tuple[ScoreEdit, ...] = ()


def marked_line(
    line: ScoreLine, item: RubricItem, assignment: Assignment, edits: Sequence[Edit]
) -> ScoreLine:
    """The line with what people decided about it, which outweighs the evidence.

    Its reason names nobody: the student reads it. Who decided what is in its edits, for staff.

    Args:
        line: As the evidence has it.
        item: The line's rubric item.
        edits: Those that concern the student, oldest first; of any kind and item.
    """
    marks = _told_marks(edits)
    if item.parts:
        return _line_of_parts(line, item, assignment, marks)
    found = _replayed(item.id, "", line.points, item.points, assignment, marks)
    if not found.edits:
        return line
    if found.fault:
        return replace(
            line, points=None, state=LineState.AWAITING, floor=None, reason=found.fault, edits=found.edits
        )
    if not found.marked:
        return replace(line, edits=found.edits, comments=found.comments)
    told = MARKED if item.by_person else "Changed by a person."
    return replace(
        line,
        points=found.points,
        state=LineState.DECIDED,
        floor=None,
        reason=told,
        edits=found.edits,
        comments=found.comments,
    )


def stray_targets(assignment: Assignment, edits: Sequence[Edit]) -> tuple[str, ...]:
    """The items, parts and checks that edits are about and that the assignment no longer has."""
    targets, checks = assignment.mark_targets(), {check.id for check in assignment.checks}
    stray: dict[str, None] = {}
    for edit in edits:
        match edit:
            case Marked(target=target) if target not in targets:
                stray[target] = None
            case Waived(check=check, lifted=False) if check not in checks:
                stray[check] = None
    return tuple(stray)


def _line_of_parts(
    line: ScoreLine, item: RubricItem, assignment: Assignment, marks: Sequence[ToldMark]
) -> ScoreLine:
    parts: list[PartScore] = []
    edits: list[ScoreEdit] = []
    told: list[str] = []
    for part in item.parts:
        found = _replayed(part_target(item, part), part.id, None, part.points, assignment, marks)
        parts.append(PartScore(part.id, part.title, found.points, part.points, found.comments))
        edits += found.edits
        told += [found.fault] if found.fault else []
    edits.sort(key=lambda edit: edit.when)
    known = [part.points for part in parts if part.points is not None]
    together = rounded(sum(known))
    filled = replace(line, parts=tuple(parts), edits=tuple(edits))
    if len(known) == len(parts):
        return replace(filled, points=together, state=LineState.DECIDED, floor=None, reason=MARKED)
    if known:
        told.insert(0, f"{len(known)} of {len(parts)} parts are marked.")
    reason = " ".join(told) or line.reason
    return replace(
        filled, points=None, state=LineState.AWAITING, floor=together if known else None, reason=reason
    )


def _replayed(
    target: str,
    part: str,
    unmarked: float | None,
    maximum: float,
    assignment: Assignment,
    marks: Sequence[ToldMark],
) -> Marks:
    current, found, fault, last = unmarked, [], "", None
    for edit, released in marks:
        if edit.target != target:
            continue
        last = edit, released
        new, fault = unmarked, ""
        if edit.points is not None and 0 <= edit.points <= maximum:
            new = rounded(edit.points)
        elif edit.points is not None:
            new = None
            fault = (
                f"{plain(edit.points)} points were given for '{target}', which has 0 to {plain(maximum)} "
                "now: a person marks it again."
            )
        found.append(ScoreEdit(edit.who, edit.when, edit.why, current, new, part, edit.sheet))
        current = new
    if last is None or fault:
        return Marks(current, False, fault=fault, edits=tuple(found))
    edit, released = last
    stands = edit.points is not None
    told = _comments(assignment, edit) if stands or released else ()
    return Marks(current, stands, told, edits=tuple(found))


def _told_marks(edits: Sequence[Edit]) -> list[ToldMark]:
    """The marks, each with whether the grade had been released before."""
    released, found = False, []
    for edit in edits:
        released = released or isinstance(edit, Released)
        if isinstance(edit, Marked):
            found.append((edit, released))
    return found


def _comments(assignment: Assignment, edit: Marked) -> tuple[str, ...]:
    """What the student is told: of the comment bank as it reads today, so that a fixed text reaches all."""
    today = {remark.id: remark.text for remark in assignment.remarks}
    chosen = tuple(today.get(remark_id, text) for remark_id, text in edit.remarks)
    return (*chosen, edit.comment) if edit.comment else chosen
