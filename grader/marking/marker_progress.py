"""How far each marker is, and how their points lie."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.gradebook.task_records import TaskRow
from grader.marking.desk import Desk, current_records


@dataclass(frozen=True)
class MarkerProgress:
    """One marker's marks of one question; a team counts once.

    Attributes:
        marker: Empty for what is assigned to nobody.
        assigned: How many tasks are assigned to them.
        marked: How many marks that stand are theirs.
        left: How many of those assigned to them have no mark.
        median, lowest, highest: Of their points; None without marks.
        spread: The standard deviation of their points (of the sample); None with fewer than two.
        last: When they gave their last mark.
    """

    marker: str
    target: str
    maximum: float
    assigned: int
    marked: int
    left: int
    median: float | None
    lowest: float | None
    highest: float | None
    spread: float | None
    last: datetime | None


def marker_progress(desk: Desk, *, target: str = "") -> tuple[MarkerProgress, ...]:
    """The progress of all markers, by question and marker.

    Args:
        target: Only this question; empty: all.
    """
    progress: list[MarkerProgress] = []
    with current_records(desk) as records:
        for one, maximum in desk.assignment.mark_targets().items():
            if target in ("", one):
                tasks = records.tasks.of_question(one)
                progress += _of_question(one, maximum, tasks, records.markers.allocations(one))
    return tuple(progress)


def _of_question(
    target: str, maximum: float, tasks: Sequence[TaskRow], allocated: Mapping[str, str]
) -> Iterator[MarkerProgress]:
    """The progress of all who mark a question or are to mark it, sorted."""
    own = {task.row: allocated.get(task.row, "") for task in tasks}
    given = [task.given for task in tasks if task.given.points is not None]
    for marker in sorted({*own.values(), *(mark.marker for mark in given)}):
        points = [mark.points for mark in given if mark.marker == marker and mark.points is not None]
        moments = [mark.marked_at for mark in given if mark.marker == marker]
        yield MarkerProgress(
            marker=marker,
            target=target,
            maximum=maximum,
            assigned=sum(own_marker == marker for own_marker in own.values()),
            marked=len(points),
            left=sum(task.open and own[task.row] == marker for task in tasks),
            median=statistics.median(points) if points else None,
            lowest=min(points, default=None),
            highest=max(points, default=None),
            spread=statistics.stdev(points) if len(points) > 1 else None,
            last=datetime.fromisoformat(max(moments)) if moments else None,
        )
