"""The score of one submission."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from grader.domain.assignment import Assignment, RubricItem
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, Score, ScoreEdit, ScoreLine
from grader.domain.submission import Role
from grader.scoring.forbidden import forbidden
from grader.scoring.lateness import late_record
from grader.scoring.lines import person_line, scored_line, undecided_line
from grader.scoring.points import plain, rounded
from grader.scoring.states import AWAITING, DECIDED

_NO_MARKS: Mapping[str, float] = MappingProxyType({})
_NO_EDITS: Mapping[str, Sequence[ScoreEdit]] = MappingProxyType({})


def score(
    assignment: Assignment,
    evidence: Evidence,
    *,
    marks: Mapping[str, float] = _NO_MARKS,
    edits: Mapping[str, Sequence[ScoreEdit]] = _NO_EDITS,
) -> Score:
    """The points that the evidence is worth under the assignment's rubric.

    Args:
        assignment: The rubric, the checks and the forbidden parts.
        evidence: What was found out about the submission.
        marks: What a person gave, by the id of an item that a person marks.
        edits: A person's changes, oldest first, by the id of any item: the last one's `new` counts, and
            None makes the item undecided again.

    Returns:
        One line per rubric item, in its order. The total sums the known points; it is None for what was
        refused, for a fault of the grader, and (withheld) when a required file is missing.

    Raises:
        UsageError: A mark or an edit is for no such item or not within its points, or the evidence is
            about another assignment.
        EngineError: The evidence has a status that does not exist.
    """
    if evidence.assignment_id != assignment.id:
        raise UsageError(
            f"{evidence.student_id}: the evidence is about '{evidence.assignment_id}', "
            f"not '{assignment.id}'. Score it with its own assignment."
        )
    _require_markable(assignment, marks, edits)
    status, reason = _status(assignment, evidence)
    nothing = _nothing_found(status, evidence)
    found = forbidden(assignment.forbidden, evidence.forbidden, evidence.findings)
    lines = []
    for item in assignment.rubric:
        if nothing and not item.by_person:
            line = undecided_line(item, nothing)
        elif nothing:
            line = person_line(item, marks)
        else:
            line = scored_line(item, assignment, evidence, found, marks)
        lines.append(_edited(line, edits.get(item.id, ())))
    known = rounded(sum(line.points for line in lines if line.points is not None))
    total = known if status is GradeStatus.GRADED else None
    return Score(
        student_id=evidence.student_id,
        status=status,
        lines=tuple(lines),
        total=total,
        decided=rounded(sum(line.maximum for line in lines if line.state == DECIDED)),
        maximum=rounded(assignment.maximum),
        reason=reason,
        late=late_record(assignment, evidence, total),
    )


def _status(assignment: Assignment, evidence: Evidence) -> tuple[GradeStatus, str]:
    if evidence.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        return GradeStatus(evidence.status), evidence.reason
    if evidence.status is not None:
        raise EngineError(
            f"{evidence.student_id}: the evidence has the status '{evidence.status}', which does not exist. "
            "Grade the submission again."
        )
    if evidence.missing and not evidence.partial:
        names = [_file_name(assignment, evidence.student_id, role) for role in evidence.missing]
        verb = "is" if len(names) == 1 else "are"
        return GradeStatus.INCOMPLETE, f"{' and '.join(names)} {verb} missing: the total is withheld."
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


def _edited(line: ScoreLine, edits: Sequence[ScoreEdit]) -> ScoreLine:
    if not edits:
        return line
    last = edits[-1]
    return replace(
        line,
        points=None if last.new is None else rounded(last.new),
        reason=f"Changed by {last.who}: {last.why}",
        state=AWAITING if last.new is None else DECIDED,
        floor=line.floor if last.new is None else None,
        edits=tuple(edits),
    )


def _require_markable(
    assignment: Assignment, marks: Mapping[str, float], edits: Mapping[str, Sequence[ScoreEdit]]
) -> None:
    items = {item.id: item for item in assignment.rubric}
    for item_id in (*marks, *edits):
        if item_id not in items:
            raise UsageError(
                f"The rubric of '{assignment.id}' has no item '{item_id}'. Its items are {', '.join(items)}."
            )
    for item_id, points in marks.items():
        if not items[item_id].by_person:
            raise UsageError(
                f"'{item_id}' is not marked by a person: the grader scores it. "
                "Record a change of the score instead."
            )
        _require_within(items[item_id], points)
    for item_id, changes in edits.items():
        for change in changes:
            if change.new is not None:
                _require_within(items[item_id], change.new)


def _require_within(item: RubricItem, points: float) -> None:
    if not (math.isfinite(points) and 0 <= points <= item.points):
        raise UsageError(
            f"'{item.id}' is marked with {points:g}, but it has 0 to {plain(item.points)} points. "
            "Correct the mark."
        )
