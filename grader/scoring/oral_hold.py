"""What an oral check does to a score: it holds the grade until there is an outcome, and takes no points.

A student who was picked has no total until somebody records how the check went. If the student passed, or
is excused, the total is what it would be without a check. If the student failed or did not come, a person
rules: nothing counts, or the total does all the same. An outcome and the ruling on it are about the files
that the student had handed in: after a new submission, the check is open again. It never picks anybody, and
it never takes points off by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.domain.edit import Edit, OrallyChecked, PickedForOral, Ruled
from grader.domain.evidence import Evidence
from grader.domain.oral_check import UNSETTLED, OralCheck, OralFlag, OralOutcome
from grader.domain.score import GradeStatus, Score, ScoreEdit, rounded

_WORDS = {False: "0 points", True: "the total counts all the same"}


@dataclass(frozen=True)
class OralHold:
    """The oral check of a student, and the rulings on its outcome.

    Attributes:
        rulings: Oldest first; the last one counts.
    """

    check: OralCheck
    rulings: tuple[Ruled, ...] = ()


def oral_hold(evidence: Evidence, edits: Sequence[Edit]) -> OralHold | None:
    """The oral check of a student by what people decided; None if the student was not picked.

    Args:
        evidence: Of the submission that counts.
        edits: Those about the student, oldest first, of any kind.
    """
    flags: dict[OralFlag, None] = {}
    outcome: OrallyChecked | None = None
    asked_before = False
    rulings: list[Ruled] = []
    for edit in edits:
        match edit:
            case PickedForOral(reasons=reasons):
                flags.update(dict.fromkeys(reasons))
            case OrallyChecked(outcome=None):
                outcome, asked_before, rulings = None, False, []
            case OrallyChecked() if _is_about(edit, evidence):
                outcome, rulings = edit, []
            case OrallyChecked():
                asked_before = True
            case Ruled() if outcome is not None and outcome.outcome in UNSETTLED:
                if edit.digest == evidence.submission_digest:
                    rulings = [] if edit.withdrawn else [*rulings, edit]
    if not flags:
        return None
    if outcome is None:
        return OralHold(OralCheck(tuple(flags), asked_before=asked_before))
    holds = outcome.outcome in UNSETTLED and not rulings
    check = OralCheck(tuple(flags), outcome.outcome, outcome.why, outcome.who, holds, asked_before)
    return OralHold(check, tuple(rulings))


def _is_about(edit: OrallyChecked, evidence: Evidence) -> bool:
    """Whether an outcome is about the submission; who is excused is so whatever comes later."""
    return edit.digest == evidence.submission_digest or edit.outcome is OralOutcome.EXCUSED


def with_oral_check(score: Score, hold: OralHold) -> Score:
    """The score of a student who was picked, with its lateness unchanged.

    A total that a ruling on something else has set to 0 is not held: nothing could change it.
    """
    if score.closed:
        return replace(score, oral=replace(hold.check, holds=False))
    if hold.check.holds:
        return replace(score, total=None, oral=replace(hold.check, withheld=score.total))
    if not hold.rulings or score.status is not GradeStatus.GRADED:
        return replace(score, oral=hold.check)  # rulings on what lacks a file count anyway
    total, edits = None, list(score.edits)
    for ruling in hold.rulings:
        new = score.total if ruling.counts else 0.0
        edits.append(ScoreEdit(ruling.who, ruling.when, ruling.why, total, new))
        total = new
    last = hold.rulings[-1]
    sentence = f"After an oral check: {_WORDS[last.counts]} ({last.why.rstrip('.')})."
    return replace(
        score,
        total=total,
        decided=score.decided if last.counts else rounded(score.maximum),
        reason=f"{score.reason} {sentence}".lstrip(),
        closed=not last.counts,
        edits=tuple(edits),
        oral=hold.check,
    )
