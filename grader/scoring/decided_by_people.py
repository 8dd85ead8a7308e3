"""Applies people's decisions about a submission and about the points of its items.

The last decision of each kind counts: waived checks, the claimed accuracy, whose the submission is, an
accepted file, the run that counts, what has been released to the student, and rulings on submissions that
cannot be graded. People's marks override what the evidence says about an item. It never says who may
decide.
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
    current_owner,
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

TYPED = "typed by a person"  # for students; `grader history` names the person
RULED = (GradeStatus.INCOMPLETE, GradeStatus.REFUSED)  # the results that people rule on
# whether the existing points count -> the words for it
_RULES = {False: "0 points", True: "the total counts all the same"}
_ON_REFUSED = {False: "No grade", True: "The rest counts all the same"}


def claimed(evidence: Evidence, edits: Sequence[Edit]) -> Claim | None:
    """The claim that counts.

    Args:
        evidence: With the claim in the outputs or in the report, if any was found.
        edits: Those about the student, oldest first, of any kind. One without a value withdraws what was
            typed before.
    """
    typed = [edit for edit in edits if isinstance(edit, Claimed)]
    if typed and typed[-1].accuracy is not None:
        return Claim(typed[-1].accuracy, TYPED, typed[-1].why)
    return evidence.claim


def waived_checks(assignment: Assignment, edits: Sequence[Edit]) -> dict[str, Waiver]:
    """The waived checks of the assignment, each with who waived it and why.

    Args:
        edits: Oldest first; the last decision on each check counts.
    """
    check_ids = {check.id for check in assignment.checks}
    waiver_by_check: dict[str, Waiver] = {}
    for edit in edits:
        match edit:
            case Waived(check=check, lifted=True):
                waiver_by_check.pop(check, None)
            case Waived(check=check) if check in check_ids:
                waiver_by_check[check] = Waiver(edit.who, edit.why.rstrip("."))
    return waiver_by_check


def with_waived(assignment: Assignment, evidence: Evidence, waived: Mapping[str, Waiver]) -> Evidence:
    """The evidence in which every waived check has passed, whatever it found.

    A finding that was folded under a waived one stands by itself. A check that was not tried because of a
    waived one becomes unknown: nobody can say any more that the student failed it.

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
    checks_found = dict.fromkeys(finding.check for finding in evidence.findings)
    findings = [_unfolded(one, passed) for one in evidence.findings if one.check not in passed]
    positions = {
        check: index
        for index, check in enumerate((*checks_found, *(one for one in passed if one not in checks_found)))
    }
    findings += passed.values()
    return replace(evidence, findings=tuple(sorted(findings, key=lambda finding: positions[finding.check])))


def _unfolded(finding: Finding, waived: Collection[str]) -> Finding:
    """The finding, unfolded if the check with its cause is waived."""
    if finding.because not in waived:
        return finding
    if finding.status is not Status.SKIPPED:
        return replace(finding, because=None)
    message = f"It was not tried because of `{finding.because}`, which was given back to the class."
    return replace(
        finding, because=None, status=Status.ERRORED, blame=Blame.INSTRUCTOR, message=message, hint=""
    )


def acceptance(evidence: Evidence, edits: Sequence[Edit]) -> Acceptance | None:
    """The file that a person accepted as the report, if it was set aside and there is no other report."""
    if Role.REPORT not in evidence.missing:
        return None
    last_accepted = next((edit for edit in reversed(edits) if isinstance(edit, Accepted)), None)
    if last_accepted is None or last_accepted.file not in {file.name for file in evidence.refused_files}:
        return None
    return Acceptance(last_accepted.file, last_accepted.why)


def with_acceptance(evidence: Evidence, accepted: Acceptance | None) -> Evidence:
    """The evidence in which the accepted file is the report."""
    if accepted is None:
        return evidence
    return replace(
        evidence,
        missing=tuple(role for role in evidence.missing if role != Role.REPORT),
        refused_files=tuple(file for file in evidence.refused_files if file.name != accepted.file),
    )


def ownership(edits: Sequence[Edit]) -> Ownership | None:
    """What was found out or decided about whose a submission is.

    Args:
        edits: Those about it, oldest first, of any kind.
    """
    owner = current_owner(edits)
    if owner is None:
        return None
    reason = f"{owner.who}: {owner.why}" if owner.by_person else owner.why
    return Ownership(owner.held, owner.by_person, reason)


def lower_run(edits: Sequence[Edit]) -> LowerRun | None:
    """The run that gave less, until a person or a later run settles the matter.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    last_choice = next((edit for edit in reversed(edits) if isinstance(edit, RunChosen)), None)
    return (
        LowerRun(last_choice.because is Because.KEPT, last_choice.reason)
        if last_choice and last_choice.has_fallen
        else None
    )


def release(edits: Sequence[Edit]) -> Release | None:
    """The releases of the grade to the student; None if it was never released.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    releases = [edit for edit in edits if isinstance(edit, Released)]
    if not releases:
        return None
    lines: dict[str, tuple[float, Released]] = {}
    for edit in releases:
        for target, points in edit.lines:
            if points is not None:
                lines.setdefault(target, (points, edit))
    complete = (
        (edit.points, edit.when)
        for edit in releases
        if edit.points is not None and all(points is not None for _, points in edit.lines)
    )
    return Release(
        first=releases[0].when,
        last=releases[-1].when,
        points=releases[-1].points,
        whole=next(complete, None),
        lines=tuple((target, points, edit.when) for target, (points, edit) in lines.items()),
    )


def line_points(score: Score) -> tuple[tuple[str, float | None], ...]:
    """The points of a score's lines and their parts, as a release keeps them; None for open lines."""
    targets = [(line.id, line.points) for line in score.lines]
    targets += [(f"{line.id}.{part.id}", part.points) for line in score.lines for part in line.parts]
    decided = [(target, rounded(points)) for target, points in targets if points is not None]
    return (*decided, *((target, None) for target in (*score.awaiting, *score.not_run)))


@dataclass(frozen=True)
class RuledTotal:
    """The total of a submission: its points, the reason, and whether a ruling fixed them."""

    points: float | None
    reason: str
    closed: bool = False
    edits: tuple[ScoreEdit, ...] = ()


def rulings(status: GradeStatus, evidence: Evidence, edits: Sequence[Edit]) -> tuple[Ruled, ...]:
    """The rulings on exactly this submission, oldest first: the last one counts.

    A ruling is about the files that the person saw. Whatever the student hands in later is judged again. One
    that withdraws ends all before it.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    if status not in RULED:
        return ()  # a fault of the grader costs nobody points
    about = (None, evidence.submission_digest)
    ruled = [edit for edit in edits if isinstance(edit, Ruled) and edit.digest in about]
    withdrawn = max((index for index, edit in enumerate(ruled) if edit.withdrawn), default=-1)
    return tuple(ruled[withdrawn + 1 :])


def lifts(ruled: Sequence[Ruled]) -> bool:
    """Whether the existing points count by the last ruling."""
    return bool(ruled) and ruled[-1].counts


def total_of(
    status: GradeStatus, reason: str, known: float, ruled: Sequence[Ruled], *, decided: bool
) -> RuledTotal:
    """The sum of the known points if it counts, and people's rulings on it.

    Args:
        reason: Why it is not graded as usual.
        known: The sum of the lines with points.
        ruled: By `rulings`.
        decided: Whether every line has its points.
    """
    if status is GradeStatus.GRADED:
        return RuledTotal(known, reason)
    by_hand = decided and status is not GradeStatus.INCOMPLETE
    points, closed, explanation = known if by_hand else None, False, reason
    if by_hand:
        explanation = f"{reason} People gave the points of every item.".lstrip()
    elif status is GradeStatus.INCOMPLETE:
        explanation = f"{reason}: the total is withheld."
    edits = []
    for ruling in ruled:
        closed = not ruling.counts
        new = 0.0 if closed else known
        edits.append(ScoreEdit(ruling.who, ruling.when, ruling.why, points, new))
        points, why = new, ruling.why.rstrip(".")
        if status is GradeStatus.INCOMPLETE:
            explanation = f"{reason}: {_RULES[ruling.counts]} ({why})."
        else:
            explanation = f"{reason} {_ON_REFUSED[ruling.counts]}: {why}.".lstrip()
    return RuledTotal(points, explanation, closed, tuple(edits))


# --- marked lines ----------------------------------------------------------------------------------------


MARKED = "Marked by a person."
MarkWithRelease = tuple[Marked, bool]


@dataclass(frozen=True)
class Marks:
    """The marks of one item or part, replayed.

    Attributes:
        points: The points that count now; None if there is no mark, or none that fits the rubric.
        marked: Whether somebody's mark stands.
        comments: The comments for the student; if a mark was withdrawn after a release, the reason.
        fault: Why a mark no longer counts, in a sentence.
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
    """The line with people's decisions about it, which outweigh the evidence.

    Its reason names nobody, because the student reads it. Its edits say who decided what, for staff.

    Args:
        line: The line by the evidence.
        item: The line's rubric item.
        edits: Those that concern the student, oldest first; of any kind and item.
    """
    marks = _marks_with_release(edits)
    if item.parts:
        return _line_of_parts(line, item, assignment, marks)
    replayed = _replayed(item.id, "", line.points, item.points, assignment, marks)
    if not replayed.edits:
        return line
    if replayed.fault:
        return replace(
            line,
            points=None,
            state=LineState.AWAITING,
            floor=None,
            reason=replayed.fault,
            edits=replayed.edits,
        )
    if not replayed.marked:
        return replace(line, edits=replayed.edits, comments=replayed.comments)
    reason = MARKED if item.by_person else "Changed by a person."
    return replace(
        line,
        points=replayed.points,
        state=LineState.DECIDED,
        floor=None,
        reason=reason,
        edits=replayed.edits,
        comments=replayed.comments,
    )


def stray_targets(assignment: Assignment, edits: Sequence[Edit]) -> tuple[str, ...]:
    """The items, parts and checks of edits that the assignment no longer has."""
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
    line: ScoreLine, item: RubricItem, assignment: Assignment, marks: Sequence[MarkWithRelease]
) -> ScoreLine:
    parts: list[PartScore] = []
    edits: list[ScoreEdit] = []
    sentences: list[str] = []
    for part in item.parts:
        replayed = _replayed(part_target(item, part), part.id, None, part.points, assignment, marks)
        parts.append(PartScore(part.id, part.title, replayed.points, part.points, replayed.comments))
        edits += replayed.edits
        sentences += [replayed.fault] if replayed.fault else []
    edits.sort(key=lambda edit: edit.when)
    known = [part.points for part in parts if part.points is not None]
    subtotal = rounded(sum(known))
    filled = replace(line, parts=tuple(parts), edits=tuple(edits))
    if len(known) == len(parts):
        return replace(filled, points=subtotal, state=LineState.DECIDED, floor=None, reason=MARKED)
    if known:
        sentences.insert(0, f"{len(known)} of {len(parts)} parts are marked.")
    reason = " ".join(sentences) or line.reason
    return replace(
        filled, points=None, state=LineState.AWAITING, floor=subtotal if known else None, reason=reason
    )


def _replayed(
    target: str,
    part: str,
    unmarked: float | None,
    maximum: float,
    assignment: Assignment,
    marks: Sequence[MarkWithRelease],
) -> Marks:
    current, history, fault, last_mark = unmarked, [], "", None
    for edit, released in marks:
        if edit.target != target:
            continue
        last_mark = edit, released
        new, fault = unmarked, ""
        if edit.points is not None and 0 <= edit.points <= maximum:
            new = rounded(edit.points)
        elif edit.points is not None:
            new = None
            fault = (
                f"{plain(edit.points)} points were given for '{target}', which now has 0 to "
                f"{plain(maximum)}: a person must mark it again."
            )
        history.append(ScoreEdit(edit.who, edit.when, edit.why, current, new, part, edit.sheet))
        current = new
    if last_mark is None or fault:
        return Marks(current, False, fault=fault, edits=tuple(history))
    edit, released = last_mark
    stands = edit.points is not None
    comments = _comments(assignment, edit) if stands or released else ()
    return Marks(current, stands, comments, edits=tuple(history))


def _marks_with_release(edits: Sequence[Edit]) -> list[MarkWithRelease]:
    """The marks, each with whether the grade had been released before."""
    released, marks = False, []
    for edit in edits:
        released = released or isinstance(edit, Released)
        if isinstance(edit, Marked):
            marks.append((edit, released))
    return marks


def _comments(assignment: Assignment, edit: Marked) -> tuple[str, ...]:
    """The comments for the student, with the comment bank's current texts, so that corrections reach all."""
    today = {remark.id: remark.text for remark in assignment.remarks}
    chosen = tuple(today.get(remark_id, text) for remark_id, text in edit.remarks)
    return (*chosen, edit.comment) if edit.comment else chosen
