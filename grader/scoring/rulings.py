"""What people rule of a submission that cannot be graded, or lacks a file: the last word on its total."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.edit import Edit, Ruled
from grader.domain.evidence import Evidence
from grader.domain.score import GradeStatus, ScoreEdit

RULED = (GradeStatus.INCOMPLETE, GradeStatus.REFUSED)  # what people rule on
# whether what there is counts -> what is said of it
_RULES = {False: "0 points", True: "the total counts all the same"}
_ON_REFUSED = {False: "No grade", True: "The rest counts all the same"}


@dataclass(frozen=True)
class Total:
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
) -> Total:
    """The sum of what is known where it counts, and what people decided about it.

    Args:
        reason: Why it is not graded as it should be.
        known: The sum of the lines with points.
        ruled: By `rulings`.
        decided: Every line has its points.
    """
    if status is GradeStatus.GRADED:
        return Total(known, reason)
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
    return Total(points, told, closed, tuple(edits))
