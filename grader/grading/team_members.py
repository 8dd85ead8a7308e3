"""Those who handed in together: what one submission is worth is found out once, and is each one's own."""

from collections.abc import Sequence
from dataclasses import replace

from grader.domain.evidence import Evidence
from grader.domain.note import Note
from grader.domain.submission import Submission


def mates(submissions: Sequence[Submission]) -> dict[str, tuple[Submission, ...]]:
    """The first student of each team, and everybody without one -> the others of the team.

    Args:
        submissions: In the order in which they are graded; a team is who of it is among them.
    """
    firsts: dict[tuple[str, ...], str] = {}
    found: dict[str, list[Submission]] = {}
    for one in submissions:
        first = firsts.setdefault(one.team, one.student_id) if one.team else one.student_id
        others = found.setdefault(first, [])
        if first != one.student_id:
            others.append(one)
    return {first: tuple(others) for first, others in found.items()}


def handed_on(evidence: Evidence, first: Submission, mate: Submission) -> Evidence:
    """What was found out about a team's submission as another member's.

    Args:
        evidence: What was found out.
        first: The team's submission as it was examined. What its notes say of that student is not told again.
        mate: The same as it is the other member's.
    """
    return replace(
        evidence,
        student_id=mate.student_id,
        received_at=mate.received_at,
        delivery=mate.delivery,
        origin=mate.origin,
        notes=(*map(Note, mate.notes), *(note for note in evidence.notes if note.text not in first.notes)),
    )
