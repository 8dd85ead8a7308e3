"""What a student's pages show of a result before the deadline, where the tries with feedback are used up.

It leaves out what hidden checks found, what was measured on hidden data, and the points that either gives.
It never decides which submission gets feedback (`grader.scoring.tries` does), and the gradebook and the
pages for staff keep everything.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.domain.score import LineState, Score, ScoreLine, rounded

WITHHELD = "Its points are shown when grades are released."


def as_shown(
    assignment: Assignment, evidence: Evidence, score: Score, now: datetime
) -> tuple[Evidence, Score]:
    """What a student may see of a result now.

    Args:
        now: When the pages are made. From the deadline on, everything is shown.
    """
    if score.tries is None or now > score.tries.due:
        return evidence, replace(score, tries=None)
    if not score.tries.withholds(now):
        return evidence, score
    public = {check.id for check in assignment.checks if check.public}
    by_person = {item.id for item in assignment.rubric if item.by_person}
    lines = tuple(
        line
        if line.id in by_person
        else replace(
            line,
            points=None,
            reason=WITHHELD,
            state=LineState.WITHHELD,
            floor=None,
            components=(),
            edits=(),
            comments=(),
            attempts=None,
        )
        for line in score.lines
    )
    shown = replace(
        score,
        lines=lines,
        total=_shown_total(score, lines),
        decided=rounded(sum(line.maximum for line in lines if line.state is LineState.DECIDED)),
        late=None,
        lower=None,
        released=None,
        resubmission=None,
    )
    visible = replace(
        evidence,
        findings=tuple(finding for finding in evidence.findings if finding.check in public),
        training=Training(TrainingOutcome.NOT_RUN),
        checkpoint=Checkpoint("not_tried"),
        further={},
        study=None,
        figures=(),
    )
    return visible, shown


def _shown_total(score: Score, lines: Sequence[ScoreLine]) -> float | None:
    """The total of what is shown; where there is none, or a ruling fixed it, it stays so."""
    if score.awaits_oral:
        return None
    if score.total is None or score.closed:
        return score.total
    return rounded(sum(line.points or 0.0 for line in lines))
