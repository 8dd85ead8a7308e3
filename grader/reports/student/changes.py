"""What changed since a grade was released, as its student is told: then and now, and nothing in between."""

from collections.abc import Mapping
from datetime import datetime

from grader.domain.formatting import points
from grader.domain.score import Score


def changed_lines(score: Score) -> Mapping[str, str]:
    """Rubric item, or part of one -> a sentence, for those whose points are others since they were released.

    Of each, the first release in which it had points; what nobody knew before is not a change.
    """
    if score.released is None:
        return {}
    now = {line.id: line.points for line in score.lines}
    now |= {f"{line.id}.{part.id}": part.points for line in score.lines for part in line.parts}
    return {
        target: _since(when, before, now[target])
        for target, before, when in score.released.lines
        if target in now and now[target] != before
    }


def changed_grade(score: Score) -> str:
    """The same for the grade, after what lateness costs; empty where it is what it was.

    While something was open the grade was to grow: that it did is not a change.
    """
    if score.released is None or score.released.whole is None:
        return ""
    before, when = score.released.whole
    if before == score.final:
        return ""
    late = score.late is not None and bool(score.late.penalty)
    return _since(when, before, score.final, ", after what lateness costs" if late else "")


def _since(when: datetime, before: float, now: float | None, how: str = "") -> str:
    return f"Changed since {when:%Y-%m-%d}: {points(before)} → {points(now)}{how}."
