"""What people decided about the points of one item: their marks over what the evidence says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment, RubricItem, part_target
from grader.domain.edit import Edit, Marked, Released, Waived
from grader.domain.score import LineState, PartScore, ScoreEdit, ScoreLine, rounded
from grader.scoring.points import plain

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
