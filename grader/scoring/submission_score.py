"""Computes the score of a submission: all lines of its rubric, lateness, and the total.

It combines the lines, applies people's decisions, and takes off the penalty for lateness (`lateness`). If
the assignment allows a resubmission, the points of two attempts become one score (`resubmission`). An oral
check may hold the total (`oral_hold`). It determines the state of the whole score. It never decides about
the points of a single line.
"""

from collections.abc import Sequence
from dataclasses import replace

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, LineState, Score, rounded
from grader.domain.submission import Role
from grader.domain.submission_result import NO_HISTORY, History
from grader.scoring.decided_by_people import (
    acceptance,
    claimed,
    lifts,
    lower_run,
    marked_line,
    ownership,
    release,
    rulings,
    total_of,
    waived_checks,
    with_acceptance,
    with_waived,
)
from grader.scoring.disputed_points import regrade_requests
from grader.scoring.grade_state import grade_review
from grader.scoring.inquiries import inquiries
from grader.scoring.lateness import late_record
from grader.scoring.oral_hold import oral_hold, with_oral_check
from grader.scoring.resubmission import (
    AttemptScore,
    Instead,
    attempt_instead,
    own_attempts,
    resubmitted,
    with_one_deadline,
)
from grader.scoring.rubric_lines import forbidden, lost_line, person_line, scored_line, undecided_line
from grader.scoring.tries import own_try


def score(
    assignment: Assignment,
    evidence: Evidence,
    *,
    edits: Sequence[Edit] = (),
    history: History = NO_HISTORY,
) -> Score:
    """The points that the evidence is worth under the assignment's rubric.

    Args:
        assignment: The rubric, the checks and the forbidden parts.
        evidence: The evidence about the submission.
        edits: People's decisions, oldest first. Those about other students are ignored, as are those about
            items and checks that the assignment no longer has (`stray_targets` names them).
        history: The student's other attempts, and the late days that other assignments have used.

    Returns:
        One line per rubric item, in its order. The total sums the known points. It is None if the submission
        was refused, if the grader failed, and (withheld) if a required file is missing. A person's ruling
        ends that, and in the first two cases so do people's points for every line. If the ruling says that
        the rest counts, items that could not be judged for lack of code give no points. It is also None
        while an oral check holds it.

    Raises:
        UsageError: The evidence is about another assignment.
        EngineError: The evidence has a status that does not exist.
    """
    if evidence.assignment_id != assignment.id:
        raise UsageError(
            f"{evidence.student_id}: the evidence is about '{evidence.assignment_id}', "
            f"not '{assignment.id}'. Score it with its own assignment."
        )
    own_edits = [edit for edit in edits if edit.student_id in (None, evidence.student_id)]
    points, delivered = _score_of_attempts(assignment, evidence, own_edits, history)
    hold = oral_hold(evidence, own_edits)
    if hold is not None:
        points = with_oral_check(points, hold)
        total = points.oral.withheld if points.oral is not None and points.awaits_oral else points.total
        late = late_record(assignment, delivered, total, own_edits, history, withheld=points.awaits_oral)
        points = replace(points, late=late)
    return replace(
        points,
        tries=own_try(assignment, evidence, own_edits, history),
        requests=regrade_requests(own_edits),
        inquiries=inquiries(own_edits),
        review=grade_review(assignment, points, evidence.submission_digest, own_edits),
    )


def _score_of_attempts(
    assignment: Assignment, evidence: Evidence, own_edits: Sequence[Edit], history: History
) -> tuple[Score, Evidence]:
    """The points of the attempt that counts, and what it regains of those that an earlier one lost.

    Args:
        own_edits: The edits about the student, oldest first.

    Returns:
        The score, and the attempt whose arrival decides whether it is late.
    """
    if assignment.resubmission is None:
        return _attempt_score(assignment, evidence, own_edits, history), evidence
    evidence, history = with_one_deadline(evidence, history)
    newest = _attempt_score(assignment, evidence, own_edits, history)
    alone = _attempt_scores(assignment, history)
    about = own_attempts(assignment, evidence, own_edits, history, alone=alone)
    if about.first is None:
        return replace(newest, resubmission=about.ignored), evidence
    combined = resubmitted(assignment, about, newest)
    late = late_record(assignment, about.first, combined.total, own_edits, history)
    return replace(combined, late=late), about.first


def counting_instead(
    assignment: Assignment, evidence: Evidence, edits: Sequence[Edit], history: History
) -> Instead | None:
    """The attempt that counts in the place of the one that was examined last: see `attempt_instead`.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    evidence, history = with_one_deadline(evidence, history)
    alone = _attempt_scores(assignment, history)
    return attempt_instead(assignment, evidence, edits, history, alone=alone)


def _attempt_scores(assignment: Assignment, history: History) -> AttemptScore:
    """What scores one attempt of the history."""

    def alone(evidence: Evidence, about: Sequence[Edit]) -> Score:
        return _attempt_score(assignment, evidence, about, history)

    return alone


def _attempt_score(
    assignment: Assignment, evidence: Evidence, own_edits: Sequence[Edit], history: History
) -> Score:
    """The points of one attempt, whatever other attempts there are.

    Args:
        own_edits: The edits about the student, oldest first.
    """
    waived = waived_checks(assignment, own_edits)
    claim = claimed(evidence, own_edits)
    accepted = acceptance(evidence, own_edits)
    evidence = replace(with_waived(assignment, with_acceptance(evidence, accepted), waived), claim=claim)
    status, reason = _status(assignment, evidence)
    unscorable, ruled = _why_unscorable(status, evidence), rulings(status, evidence, own_edits)
    consequences = forbidden(assignment.forbidden, evidence.forbidden, evidence.findings, evidence.unproven)
    lines = []
    for item in assignment.rubric:
        if unscorable and not item.by_person:
            line = undecided_line(item, unscorable)
            if lifts(ruled):
                line = lost_line(item, handed_in=status is GradeStatus.REFUSED)
        elif unscorable:
            line = person_line(item)
        else:
            line = scored_line(item, assignment, evidence, consequences, waived)
        lines.append(marked_line(line, item, assignment, own_edits))
    known_points = rounded(sum(line.points for line in lines if line.points is not None))
    decided = rounded(sum(line.maximum for line in lines if line.state == LineState.DECIDED))
    ruled_total = total_of(
        status, reason, known_points, ruled, decided=all(line.points is not None for line in lines)
    )
    return Score(
        student_id=evidence.student_id,
        status=status,
        lines=tuple(lines),
        total=ruled_total.points,
        decided=assignment.maximum if ruled_total.closed else decided,
        maximum=assignment.maximum,
        reason=ruled_total.reason,
        closed=ruled_total.closed,
        edits=ruled_total.edits,
        waived=tuple(waived.items()),
        late=late_record(assignment, evidence, ruled_total.points, own_edits, history),
        claim=claim,
        lower=lower_run(own_edits),
        ownership=ownership(own_edits),
        released=release(own_edits),
        accepted=accepted,
    )


def _status(assignment: Assignment, evidence: Evidence) -> tuple[GradeStatus, str]:
    if evidence.status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR):
        return GradeStatus(evidence.status), evidence.reason
    if evidence.status is not None:
        raise EngineError(
            f"{evidence.student_id}: the evidence has the status '{evidence.status}', which does not exist. "
            "Grade the submission again."
        )
    if evidence.absent:
        return GradeStatus.INCOMPLETE, "Nothing was handed in"
    if evidence.missing and not evidence.partial:
        asked = evidence.origin.asked_id(evidence.student_id)
        names = [_file_name(assignment, asked, role) for role in evidence.missing]
        reason = f"{names[0]} is missing" if len(names) == 1 else f"{' and '.join(names)} are missing"
        return GradeStatus.INCOMPLETE, reason
    return GradeStatus.GRADED, evidence.reason


def _file_name(assignment: Assignment, student_id: str, role: str) -> str:
    asked = next((file for file in assignment.files if file.role == role), None)
    if asked is None:
        return f"the {role} file"
    stem = asked.stem or assignment.file_stem
    return stem.replace("{student_id}", student_id) + " or ".join(asked.suffixes)


def _why_unscorable(status: GradeStatus, evidence: Evidence) -> str:
    """Why no item can be scored automatically; empty if they can."""
    if status is GradeStatus.ENGINE_ERROR:
        return f"The grader failed, so nothing is known. {evidence.reason}".strip()
    if status is GradeStatus.REFUSED:
        return evidence.reason or "The submission cannot be graded."
    if Role.CODE in evidence.missing:
        return "No code was handed in, so there is nothing to check."
    return ""
