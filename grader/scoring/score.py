"""The score of one submission."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, Score, ScoreEdit
from grader.domain.submission import Role
from grader.scoring.claims import claimed
from grader.scoring.forbidden import forbidden
from grader.scoring.lateness import late_record
from grader.scoring.lines import person_line, scored_line, undecided_line
from grader.scoring.owners import ownership
from grader.scoring.people import marked_line
from grader.scoring.points import rounded
from grader.scoring.releases import release
from grader.scoring.runs import lower_run
from grader.scoring.states import DECIDED
from grader.scoring.waivers import waived_checks, with_waived


def score(assignment: Assignment, evidence: Evidence, *, edits: Sequence[Edit] = ()) -> Score:
    """The points that the evidence is worth under the assignment's rubric.

    Args:
        assignment: The rubric, the checks and the forbidden parts.
        evidence: What was found out about the submission.
        edits: What people decided, oldest first. Those about other students do not count, nor those about
            items and checks that the assignment no longer has (`stray_targets` names them).

    Returns:
        One line per rubric item, in its order. The total sums the known points; it is None for what was
        refused, for a fault of the grader, and (withheld) when a required file is missing, until a person
        applies the course's rule on missing files or lifts it.

    Raises:
        UsageError: The evidence is about another assignment.
        EngineError: The evidence has a status that does not exist.
    """
    if evidence.assignment_id != assignment.id:
        raise UsageError(
            f"{evidence.student_id}: the evidence is about '{evidence.assignment_id}', "
            f"not '{assignment.id}'. Score it with its own assignment."
        )
    own = [edit for edit in edits if edit.student_id in (None, evidence.student_id)]
    waived = waived_checks(assignment, own)
    claim = claimed(evidence, own)
    evidence = replace(with_waived(assignment, evidence, waived), claim=claim)
    status, reason = _status(assignment, evidence)
    nothing = _nothing_found(status, evidence)
    found = forbidden(assignment.forbidden, evidence.forbidden, evidence.findings, evidence.unproven)
    lines = []
    for item in assignment.rubric:
        if nothing and not item.by_person:
            line = undecided_line(item, nothing)
        elif nothing:
            line = person_line(item)
        else:
            line = scored_line(item, assignment, evidence, found, waived)
        lines.append(marked_line(line, item, assignment, own))
    known = rounded(sum(line.points for line in lines if line.points is not None))
    decided = rounded(sum(line.maximum for line in lines if line.state == DECIDED))
    total = _total(status, reason, known, own)
    return Score(
        student_id=evidence.student_id,
        status=status,
        lines=tuple(lines),
        total=total.points,
        decided=rounded(assignment.maximum) if total.closed else decided,
        maximum=rounded(assignment.maximum),
        reason=total.reason,
        closed=total.closed,
        edits=total.edits,
        waived=tuple(waived.items()),
        late=late_record(assignment, evidence, total.points, own),
        claim=claim,
        lower=lower_run(own),
        ownership=ownership(own),
        released=release(own),
    )


@dataclass(frozen=True)
class _Total:
    """The total of a submission: its points, why, and whether a rule decided them for good."""

    points: float | None
    reason: str
    closed: bool = False
    edits: tuple[ScoreEdit, ...] = ()


def _total(status: GradeStatus, reason: str, known: float, edits: Sequence[Edit]) -> _Total:
    """The sum of what is known where it counts, and what people decided about a missing file."""
    if status is not GradeStatus.INCOMPLETE:
        return _Total(known if status is GradeStatus.GRADED else None, reason)
    total, closed, found, absent = None, False, [], reason
    for edit in edits:
        if edit.kind is EditKind.NO_GRADE:
            new, closed, rule = 0.0, True, "no grade"
        elif edit.kind is EditKind.WAIVE_MISSING:
            new, closed, rule = known, False, "the total counts all the same"
        else:
            continue
        found.append(ScoreEdit(edit.who, edit.when, edit.why, total, new))
        reason, total = f"{absent}: {rule} ({edit.why.rstrip('.')}).", new
    if not found:
        reason = f"{absent}: the total is withheld."
    return _Total(total, reason, closed, tuple(found))


def _status(assignment: Assignment, evidence: Evidence) -> tuple[GradeStatus, str]:
    if evidence.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        return GradeStatus(evidence.status), evidence.reason
    if evidence.status is not None:
        raise EngineError(
            f"{evidence.student_id}: the evidence has the status '{evidence.status}', which does not exist. "
            "Grade the submission again."
        )
    if evidence.missing and not evidence.partial:
        asked = evidence.origin.asked_id(evidence.student_id)
        names = [_file_name(assignment, asked, role) for role in evidence.missing]
        verb = "is" if len(names) == 1 else "are"
        return GradeStatus.INCOMPLETE, f"{' and '.join(names)} {verb} missing"
    return GradeStatus.GRADED, evidence.reason


def _file_name(assignment: Assignment, student_id: str, role: Role) -> str:
    suffixes = next((file.suffixes for file in assignment.files if file.role is role), ())
    if not suffixes:
        return f"the {role.value} file"
    return assignment.file_stem.replace("{student_id}", student_id) + " or ".join(suffixes)


def _nothing_found(status: GradeStatus, evidence: Evidence) -> str:
    """Why no item can be scored automatically; empty when they can."""
    if status is GradeStatus.ENGINE_ERROR:
        return f"The grader failed, so nothing is known. {evidence.reason}".strip()
    if status is GradeStatus.REFUSED:
        return evidence.reason or "The submission cannot be graded."
    if Role.CODE in evidence.missing:
        return "No code was handed in, so there is nothing to check."
    return ""
