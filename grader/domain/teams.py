"""Who handed in the same together: one submission, which is marked once."""

from collections.abc import Iterable

from grader.domain.evidence import Evidence


def shared_by(found: Iterable[Evidence]) -> dict[str, tuple[str, ...]]:
    """Student -> all of the team who have the same submission, sorted; without those who have their own.

    Args:
        found: What was found out about the submissions that count.
    """
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for evidence in found:
        if evidence.team:
            groups.setdefault((evidence.team, evidence.submission_digest), []).append(evidence.student_id)
    return {
        student_id: tuple(sorted(students))
        for students in groups.values()
        if len(students) > 1
        for student_id in students
    }


def team_mates(found: Iterable[Evidence]) -> frozenset[str]:
    """The students whose submission is listed under another of their team already: the first by id."""
    return frozenset(student for student, team in shared_by(found).items() if student != team[0])
