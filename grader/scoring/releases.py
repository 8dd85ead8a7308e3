"""Whether a grade left for the student, and what it was then."""

from collections.abc import Sequence

from grader.domain.edit import Edit, Released
from grader.domain.score import Release, Score
from grader.scoring.points import rounded


def release(edits: Sequence[Edit]) -> Release | None:
    """When the grade left for the student first and last; None while it did not.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    found = [edit for edit in edits if isinstance(edit, Released)]
    if not found:
        return None
    lines: dict[str, tuple[float, Released]] = {}
    for edit in found:
        for target, points in edit.lines:
            if points is not None:
                lines.setdefault(target, (points, edit))
    whole = (
        (edit.points, edit.when)
        for edit in found
        if edit.points is not None and all(points is not None for _, points in edit.lines)
    )
    return Release(
        first=found[0].when,
        last=found[-1].when,
        points=found[-1].points,
        whole=next(whole, None),
        lines=tuple((target, points, edit.when) for target, (points, edit) in lines.items()),
    )


def line_points(score: Score) -> tuple[tuple[str, float | None], ...]:
    """The points of a score's lines and their parts, as a release keeps them; None of a line that is open."""
    targets = [(line.id, line.points) for line in score.lines]
    targets += [(f"{line.id}.{part.id}", part.points) for line in score.lines for part in line.parts]
    known = [(target, rounded(points)) for target, points in targets if points is not None]
    return (*known, *((target, None) for target in (*score.awaiting, *score.not_run)))


def falls(before: float | None, after: float | None, released: Release | None) -> bool:
    """Whether a change takes from a student what was released.

    It does where it lowers the grade that there is now, and below the one that was released last. What was
    never released was never told: it may fall.

    Args:
        before: The grade that there is now, after what lateness costs (`Score.final`); None: there is none.
        after: What it would be.
        released: What left for the student so far.
    """
    if released is None or released.points is None or before is None:
        return False
    return after is None or rounded(after) < min(rounded(before), rounded(released.points))
