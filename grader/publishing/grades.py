"""What leaves the house as a student's grade: the total after any penalty, or why there is none."""

from collections.abc import Iterable

from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import listed, printable
from grader.domain.score import GradeStatus, Score
from grader.lms.export_format import Grade, Results

_SHOWN = 20  # lines of a refusal


def grade_of(score: Score) -> Grade:
    """The grade that a score comes to: never a guess, and never a zero for what is unknown."""
    reasons = _open(score)
    if reasons:
        return Grade(score.student_id, None, score.maximum, "; ".join(reasons), waits=True)
    if score.total is None:
        return Grade(score.student_id, None, score.maximum, "nothing in it could be graded")
    points = score.total if score.late is None else score.late.total_after
    return Grade(score.student_id, points, score.maximum)


def owned(results: Results) -> Results:
    """The results of which somebody knows whose they are: only these leave the house."""
    return [(evidence, score) for evidence, score in results if not score.held]


def left_out(results: Results) -> tuple[str, ...]:
    """A sentence for each submission of which nobody knows whose it is."""
    return tuple(
        f"{score.student_id}{upload_of(evidence)}: is left out until `grader owner` says whose it is. "
        f"{score.ownership.reason}"
        for evidence, score in sorted(results, key=lambda result: result[1].student_id)
        if score.ownership is not None and score.held
    )


def upload_of(evidence: Evidence) -> str:
    """What the download calls an upload, in brackets."""
    return f" ({printable(evidence.origin.upload)})" if evidence.origin.upload else ""


def exported_grades(results: Results, *, partial: bool) -> dict[str, Grade]:
    """The grades by student id, sorted, without those of submissions of which nobody knows whose they are.

    Args:
        partial: Grades that await a person may be among them; they have no points.

    Raises:
        UsageError: A grade awaits a person, and that is not allowed.
    """
    grades = {score.student_id: grade_of(score) for _, score in owned(results)}
    grades = {student_id: grades[student_id] for student_id in sorted(grades)}
    waiting = [grade for grade in grades.values() if grade.waits]
    if waiting and not partial:
        verb = "awaits" if len(waiting) == 1 else "await"
        lines = [f"  {grade.student_id}: {grade.reason}" for grade in waiting[:_SHOWN]]
        if len(waiting) > _SHOWN:
            lines.append(f"  and {len(waiting) - _SHOWN} more")
        first = (
            f"{len(waiting)} of {len(grades)} grades still {verb} a person, so nothing was exported. "
            "Decide about them, or leave them out by --partial."
        )
        raise UsageError("\n".join([first, *lines]))
    return grades


def warnings(results: Results) -> tuple[str, ...]:
    """Sentences about what is left out, and about grades that are known and yet not beyond doubt."""
    known = [(evidence, score) for evidence, score in owned(results) if grade_of(score).points is not None]
    levels = {
        "was made without the isolation that official grades require": [
            score.student_id for evidence, score in known if evidence.attestation.weak
        ],
        "is of a single file, without the rule on missing files": [
            score.student_id for evidence, score in known if evidence.partial
        ],
        "is of a late submission, and a person was to decide what follows": [
            score.student_id
            for _, score in known
            if score.late is not None and score.late.asked and not score.closed
        ],
    }
    doubts = (f"{_whose(students)} {what}." for what, students in levels.items() if students)
    return (*left_out(results), *doubts)


def _whose(students: Iterable[str]) -> str:
    return f"The grade of {listed(sorted(students))}"


def _open(score: Score) -> list[str]:
    """What a person, or another run, still decides about a score."""
    if score.status is GradeStatus.REFUSED and score.total is None:
        return []  # it stops nobody else's
    if score.status is GradeStatus.ENGINE_ERROR and score.total is None:
        return ["the grader failed, grade it again"]
    reasons = []
    if score.total is None:
        reasons.append("a file is missing, and `grader rule` has not said what follows")
    if score.lower is not None and not score.lower.kept:
        reasons.append("less than was told before, and `grader count` has not said which run counts")
    if score.awaiting:
        reasons.append(f"awaiting {', '.join(score.awaiting)}")
    if score.not_run:
        reasons.append(f"not run: {', '.join(score.not_run)}")
    if score.total is not None and score.late is not None and score.late.total_after is None:
        reasons.append("late, and nobody knows by how much")
    return reasons
