"""What people decided about grades, in a few words each, as the history of a grade and the console say it."""

from collections.abc import Mapping

from grader.domain.edit import (
    Accepted,
    Claimed,
    Edit,
    Extended,
    InquiryAsked,
    InquiryExplained,
    InquirySettled,
    InTime,
    Marked,
    OrallyChecked,
    OwnerAssigned,
    PickedForOral,
    Received,
    RegradeAnswered,
    RegradeAsked,
    Released,
    Reviewed,
    Ruled,
    RunChosen,
    Waived,
)
from grader.domain.formatting import points, stamp
from grader.domain.grade_review import GradeState
from grader.domain.oral_check import OralCheck
from grader.domain.score import Score
from grader.scoring.grade_state import grade_state, what_is_open


def decision_text(edit: Edit, before: Mapping[str, float | None]) -> tuple[str, str]:
    """(the command that decided it, what was decided).

    Args:
        before: Item or part -> the points that it had before.
    """
    match edit:
        case Marked(target=target, points=points):
            old = before.get(target)
            change = _value_text(points) if old is None else f"{old:g} -> {_value_text(points)}"
            return "mark", f"{target}: {change}"
        case Waived(check=check, lifted=lifted):
            return (
                "waive",
                f"{check} counts again" if lifted else f"{check} counts as passed for the whole class",
            )
        case Ruled(withdrawn=True):
            return "rule", "taken back"
        case Ruled(counts=counts):
            return "rule", "the total counts all the same" if counts else "0 points"
        case Claimed(accuracy=accuracy):
            return "claim", _value_text(accuracy)
        case Received(moment=moment):
            return "received", "taken back" if moment is None else stamp(moment)
        case InTime():
            return "received", "in time"
        case Extended(deadline=deadline):
            return "extension", stamp(deadline)
        case RunChosen(number=number, run=run):
            return "count", f"run {_value_text(run if number is None else number)} counts"
        case OwnerAssigned():
            return "owner", _owner_text(edit)
        case Released(way=way, points=points):
            return "released", f"{'no grade' if points is None else _value_text(points)} by {way}"
        case Reviewed(withdrawn=True):
            return "review", "taken back"
        case Reviewed(points=points):
            return "review", f"{'no grade' if points is None else _value_text(points)} looked over"
        case PickedForOral(reasons=reasons, seed=seed):
            draw = f" (seed {seed})" if seed else ""
            return "oral", f"picked{draw}: {'; '.join(str(reason).rstrip('.') for reason in reasons)}"
        case OrallyChecked(outcome=outcome):
            return "oral", "taken back" if outcome is None else outcome.value
        case RegradeAsked(target=target, points=points):
            return "request", f"{target}: {'open' if points is None else _value_text(points)} is disputed"
        case RegradeAnswered(target=target, points=points):
            return "answer", f"{target}: {'open' if points is None else _value_text(points)}"
        case InquiryAsked(about=about, place=place):
            return "inquiry", f"asked about {place or 'the work'} ({about.value})"
        case InquiryExplained(number=number):
            return "inquiry", f"question {number} is answered"
        case InquirySettled(number=number, outcome=None):
            return "inquiry", f"question {number} is open again"
        case InquirySettled(number=number, outcome=outcome, target=target, points=points):
            given = f", {target}: {_value_text(points)}" if target else ""
            return "inquiry", f"question {number} is {outcome.value if outcome else ''}{given}"
        case Accepted(file=file):
            return "accept", f"{file or ''} counts as the report"
    raise AssertionError(f"an edit of which nobody told the history: {type(edit).__name__}")


def oral_state(check: OralCheck) -> str:
    """What became of a student's oral check, in a clause."""
    if check.to_be_asked:
        return "to be asked again, about a new submission" if check.asked_before else "to be asked"
    if check.outcome is None:
        return "not to be asked: a ruling gave no points"
    said = f"{check.outcome.value} ({check.who}: {check.why.rstrip('.')})"
    return f"{said}, to be ruled on" if check.to_be_ruled else said


def review_state(score: Score) -> str:
    """How far a grade is, with who reviewed it and what changed since, in a clause."""
    review, state = score.review, grade_state(score)
    if state is GradeState.RELEASED and score.released is not None:
        now = "" if score.released.points == score.final else f", now {points(score.final)}"
        words = f"released on {score.released.last:%Y-%m-%d}: {points(score.released.points)}{now}"
    else:
        still_open = what_is_open(score)
        marking = "; ".join((state.value, *still_open)) if still_open else "marked, not reviewed"
        words = marking if state is GradeState.MARKING else state.value
    if review is None:
        return words
    since = f"; since then {review.differences}" if review.differences else ""
    by = f"by {review.who} on {review.when:%Y-%m-%d}"
    if state is GradeState.REVIEWED:
        return f"{words} {by}"
    return f"{words.removesuffix(', not reviewed')}; reviewed {by}{since}"


def _owner_text(edit: OwnerAssigned) -> str:
    if edit.by_person:
        unowned = f"it is not known whose it is: listed as {edit.listed_as}"
        return unowned if edit.held else f"it is {edit.listed_as}'s"
    return f"{'held' if edit.held else 'listed'} as {edit.listed_as}"


def _value_text(value: float | None) -> str:
    """A value that was given: points, a share, or the number of a run."""
    return "taken back" if value is None else f"{value:g}"
