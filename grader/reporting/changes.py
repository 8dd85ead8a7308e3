"""What changed since a grade was released, as its student is told: then and now, and nothing in between."""

from collections.abc import Mapping

from grader.domain.score import Release, Score
from grader.reporting.typesetting import points


def changed_lines(score: Score) -> Mapping[str, str]:
    """Rubric item, or part of one -> a sentence, for those whose points are others since the first release.

    What nobody knew then is no change.
    """
    if score.released is None:
        return {}
    now = {line.id: line.points for line in score.lines}
    now |= {f"{line.id}.{part.id}": part.points for line in score.lines for part in line.parts}
    return {
        target: _since(score.released, before, now[target])
        for target, before in score.released.lines
        if target in now and now[target] != before
    }


def changed_grade(score: Score) -> str:
    """The same for the grade, after what lateness costs; empty where it is what it was.

    Where something was awaited at the first release, the grade was to grow: that it did is no change.
    """
    released = score.released
    if released is None or released.first_points is None or released.first_points == score.final:
        return ""
    if released.awaited:
        return ""
    late = score.late is not None and bool(score.late.penalty)
    return _since(released, released.first_points, score.final, ", after what lateness costs" if late else "")


def _since(released: Release, before: float | None, now: float | None, how: str = "") -> str:
    return f"Changed since {released.first:%Y-%m-%d}: {points(before)} → {points(now)}{how}."
