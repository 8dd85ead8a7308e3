"""What each assignment adds to each student's total: certain, possible, or missing, with the reason.

A group's points are those of its submission, times what the group said of the member. Points of an
assignment whose grade awaits something lie between what is certain now and what it can still become: for
late work too, because each further point takes at most one away. It reads no file and no clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import counted, listed, stamp
from grader.domain.score import Score
from grader.domain.submission_result import Result
from grader.domain.term_total import GroupMember, PartState, TermPart, TermPeople, TermPlan, TermTotal
from grader.publishing.releases import grade_of


@dataclass(frozen=True)
class _Bounds:
    """A submission's points in its assignment, as far as they are known.

    Attributes:
        judged: How many of the assignment's points are decided.
        missing: What is missing, as a clause; empty if the grade is decided.
    """

    low: float
    high: float
    judged: float
    missing: str = ""


@dataclass(frozen=True)
class AssignmentResults:
    """What the term needs of an assignment.

    Attributes:
        assignment: None: the course does not have it yet.
        results: Student -> result, without those whose owner is unknown; None: nothing was graded yet.
        without: Students who are known to have none.
        unowned: How many submissions have no known owner.
    """

    assignment: Assignment | None
    results: Mapping[str, Result] | None
    without: frozenset[str] = frozenset()
    unowned: int = 0

    @property
    def students(self) -> frozenset[str]:
        """Those with a result, and those who are known to have none."""
        return self.without.union(self.results or ())

    @classmethod
    def of(
        cls,
        assignment: Assignment | None,
        results: Sequence[Result] | None,
        without: frozenset[str] = frozenset(),
    ) -> Self:
        """The results by student."""
        if results is None:
            return cls(assignment, None)
        owned = {result.score.student_id: result for result in results if not result.score.held}
        return cls(assignment, owned, without, len(results) - len(owned))


def course_totals(
    plan: TermPlan,
    people: TermPeople,
    assignments: Mapping[str, AssignmentResults],
    *,
    late_days: int,
    now: datetime,
    used_elsewhere: Mapping[str, int] | None = None,
) -> list[TermTotal]:
    """The totals of everybody who is on a list, in a group, or handed something in, sorted by student.

    Args:
        assignments: Those with a weight.
        late_days: Of each student for the whole course; 0: the course has none.
        now: With its zone: what is not due yet lacks nothing.
        used_elsewhere: Student -> the late days that went to assignments without a weight.
    """
    used_elsewhere = used_elsewhere or {}
    students = set(people.sections or ())
    for one in assignments.values():
        students |= one.students
    for groups in people.groups.values():
        students |= set(groups)
    return [
        TermTotal(
            student_id,
            (people.sections or {}).get(student_id, ""),
            tuple(
                _part(student_id, name, weight, assignments[name], people, now)
                for name, weight in plan.weights.items()
            ),
            plan.passing,
            late_days - _late_days_used(student_id, assignments) - used_elsewhere.get(student_id, 0)
            if late_days
            else None,
            listed=people.sections is None or student_id in people.sections,
        )
        for student_id in sorted(students)
    ]


def _late_days_used(student_id: str, assignments: Mapping[str, AssignmentResults]) -> int:
    used = 0
    for one in assignments.values():
        result = (one.results or {}).get(student_id)
        if result is not None and result.score.late is not None:
            used += result.score.late.tokens_used
    return used


def _part(
    student_id: str,
    assignment_id: str,
    weight: float,
    graded: AssignmentResults,
    people: TermPeople,
    now: datetime,
) -> TermPart:
    """What an assignment adds to a student's total."""
    members = people.groups.get(assignment_id, {}).get(student_id, ())
    own = next((member for member in members if member.student_id == student_id), None)
    part = TermPart(
        assignment_id,
        weight,
        PartState.NOT_GRADED,
        0.0,
        weight,
        0.0,
        maximum=graded.assignment.maximum if graded.assignment is not None else None,
        missing="is not graded yet",
        group=own.group if own is not None else "",
        peer_weight=own.weight if own is not None else 1.0,
    )
    if graded.assignment is None or graded.results is None:
        return part
    counting, ambiguous = _counting(student_id, members, graded.results)
    if not counting:
        return _without_submission(part, members, graded.assignment, now)
    bounds = [_bounds(result.score) for result in counting.values()]
    if ambiguous:
        low, high = min(one.low for one in bounds), max(one.high for one in bounds)
        bounds = [_Bounds(low, high, 0.0, ambiguous)]
    sender = next(iter(counting))
    part = replace(part, handed_in_by="" if sender == student_id or ambiguous else sender)
    return _with_bounds(part, bounds[0], graded.assignment.maximum)


def _without_submission(
    part: TermPart,
    members: Sequence[GroupMember],
    assignment: Assignment,
    now: datetime,
) -> TermPart:
    due = assignment.deadline
    if due is not None and due.tzinfo is not None and now <= due:
        return replace(part, missing=f"is due {stamp(due)}")
    whose = f" from the group {part.group}" if len(members) > 1 else ""
    return replace(
        part,
        state=PartState.NOTHING,
        missing=f"nothing came{whose}, and `grader rule` has not said what follows",
    )


def _with_bounds(part: TermPart, bounds: _Bounds, maximum: float) -> TermPart:
    """The part with the points of a submission, in points of the term."""
    if maximum <= 0:
        return replace(part, state=PartState.OPEN, missing="the rubric has no points")
    factor = part.peer_weight
    low, high = (min(points * factor, maximum) for points in (bounds.low, bounds.high))
    return replace(
        part,
        state=PartState.OPEN if bounds.missing else PartState.DECIDED,
        low=part.weight * low / maximum,
        high=part.weight * high / maximum,
        judged=part.weight * bounds.judged / maximum,
        grade=None if bounds.missing else low,
        missing=bounds.missing,
    )


def _bounds(score: Score) -> _Bounds:
    """A submission's points in its assignment, never a guess."""
    grade, maximum = grade_of(score), score.maximum
    if grade.points is not None:
        return _Bounds(grade.points, grade.points, maximum)
    missing = grade.reason
    if not grade.waits:
        missing += ", and `grader rule` has not said what follows"
    if score.total is None:  # withheld: a ruling may leave nothing of it, or all
        return _Bounds(0.0, maximum, 0.0, missing)
    unmarked = sum(line.maximum for line in score.lines if line.id in (*score.awaiting, *score.not_run))
    if score.final is None:  # nobody knows how late it is
        return _Bounds(0.0, min(score.total + unmarked, maximum), 0.0, missing)
    if score.lower is not None and not score.lower.kept:  # another run may count
        return _Bounds(0.0, maximum, 0.0, missing)
    return _Bounds(score.final, min(score.final + unmarked, maximum), score.decided, missing)


# --- groups ----------------------------------------------------------------------------------------------


def _counting(
    student_id: str, members: Sequence[GroupMember], results: Mapping[str, Result]
) -> tuple[dict[str, Result], str]:
    """(who handed it in -> the result that counts for a student, why several could; empty if one does).

    A member with the same files as the others has an own result: marks and late days may be the member's.
    """
    own = {student_id: results[student_id]} if student_id in results else {}
    sent = {
        member.student_id: results[member.student_id]
        for member in members
        if member.student_id in results and not results[member.student_id].evidence.absent
    }
    if not sent:  # without a group; or there is only what was ruled about the student
        return own, ""
    # of one who handed in nothing, nothing can count
    chosen = next(
        (member.student_id for member in members if member.hands_in and member.student_id in sent), None
    )
    are_different = _are_different([result.evidence for result in sent.values()])
    if chosen is not None and are_different:
        return {chosen: sent[chosen]}, ""
    if are_different:
        who = listed(sorted(sent))
        return (
            sent,
            f"{who} handed in different work: say whose counts by 'hands_in' in the file of groups",
        )
    if student_id in sent:
        return {student_id: sent[student_id]}, ""
    if len({_bounds(result.score) for result in sent.values()}) > 1:
        return sent, f"{listed(sorted(sent))} have different points for the same work"
    return dict(list(sent.items())[:1]), ""


def _are_different(handed_in: Sequence[Evidence]) -> bool:
    """Whether members handed in different work, whatever their files are called."""
    if all(evidence.files for evidence in handed_in):
        return len({frozenset((file.role, file.digest) for file in one.files) for one in handed_in}) > 1
    return len({evidence.submission_digest for evidence in handed_in}) > 1


def remarks(assignments: Mapping[str, AssignmentResults], totals: Sequence[TermTotal]) -> Iterator[str]:
    """Sentences about the term that concern no single student."""
    for name, one in assignments.items():
        if one.assignment is None:
            yield f"The course has no assignment '{name}' yet."
        if one.unowned:
            verb = "has" if one.unowned == 1 else "have"
            yield (
                f"{name}: {counted(one.unowned, 'submission')} {verb} no known owner, so somebody's total "
                "lacks it. Say whose it is with `grader owner`."
            )
    unlisted = [total.student_id for total in totals if not total.listed]
    if unlisted:
        verb = "is" if len(unlisted) == 1 else "are"
        yield f"{listed(unlisted)} {verb} not in the file of students."
