"""Second marks on a chosen share, blind to the first, and how well both agree.

A second mark changes no grade. Whoever compares both saves another mark over the first one if they want to.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.errors import UsageError
from grader.gradebook.task_records import TaskRow
from grader.marking.audit_log import Action
from grader.marking.desk import Desk, current_records, drawn, require_question
from grader.marking.mark_saving import chosen_from


@dataclass(frozen=True)
class MarkedTwice:
    """A task with two marks."""

    handle: str
    first_marker: str
    first: float
    second_marker: str
    second: float
    comment: str


@dataclass(frozen=True)
class Agreement:
    """How well first and second marks of a question agree.

    Attributes:
        chosen: The number of tasks that are to be marked twice.
        pairs: Those that have both marks.
        equal: The share of pairs with the same points; None without pairs.
        mean_difference: Second minus first, in points: a stricter second marker has a negative one.
        mean_distance: The mean of the distances, in points.
        correlation: Pearson's, from -1 to 1; None with fewer than two pairs, or if all points are equal.
    """

    target: str
    chosen: int
    pairs: tuple[MarkedTwice, ...]
    equal: float | None
    mean_difference: float | None
    mean_distance: float | None
    correlation: float | None


def choose_second(
    desk: Desk, target: str, share: float, markers: Sequence[str], now: datetime, *, by: str
) -> int:
    """Have a share of a question's submissions marked a second time, in place of an earlier choice.

    They are drawn from the class's salt: the same share gives the same submissions, and a larger one adds to
    them. Second marks that were given stay. Nobody is the second marker of what is assigned to, or was
    marked by, themselves.

    Args:
        share: From 0 to 1.
        markers: The second markers.

    Returns:
        The number of tasks that have a second marker now.

    Raises:
        UnknownTask: There is no such question.
        UsageError: The share is not from 0 to 1, or there is no marker.
    """
    require_question(desk, target)
    if not 0 <= share <= 1:
        raise UsageError(f"A share of {share:g} is not from 0 to 1. Correct it.")
    if share and not any(markers):
        raise UsageError("Somebody has to mark a second time. Name at least one marker.")
    with current_records(desk, writes=True) as records:
        tasks, salt = records.tasks.of_question(target), records.rows.salt()
        tasks.sort(key=lambda task: drawn(salt, "second", target, task.row))
        chosen = tasks[: math.floor(share * len(tasks) + 0.5)]
        done = {one.row: one.marker for one in records.markers.seconds_of_question(target)}
        first = records.markers.allocations(target)
        seconds = _seconds(chosen, markers, first, done)
        records.markers.allocate(target, {task.row: seconds.get(task.row, "") for task in tasks}, second=True)
        detail = f"{share:.0%}, {len(seconds)} by {', '.join(markers)}"
        records.markers.log(Action.SECOND_CHOSEN, by, now, detail, target=target)
    return len(seconds)


def _seconds(
    chosen: Sequence[TaskRow], markers: Sequence[str], first: Mapping[str, str], done: Mapping[str, str]
) -> dict[str, str]:
    """Row -> its second marker, in equal numbers; tasks without anybody suitable are left out.

    Args:
        first: Row -> to whom the first mark is allocated.
        done: Row -> whose second mark it has already: it stays theirs.
    """
    seconds, loads = dict(done), Counter(done.values())
    for task in chosen:
        suitable = [one for one in markers if one and one not in (first.get(task.row), task.given.marker)]
        if task.row not in done and suitable:
            marker = min(suitable, key=lambda one: loads[one])
            seconds[task.row] = marker
            loads[marker] += 1
    return seconds


def agreement(desk: Desk, target: str) -> Agreement:
    """How well the two marks agree, for those who may see both.

    Raises:
        UnknownTask: There is no such question.
    """
    require_question(desk, target)
    with current_records(desk) as records:
        tasks = records.tasks.of_question(target)
        chosen = records.markers.allocations(target, second=True)
        second = {(one.row, one.marker): one for one in records.markers.seconds_of_question(target)}
    pairs = tuple(
        MarkedTwice(
            handle=task.handle,
            first_marker=task.given.marker,
            first=task.given.points,
            second_marker=mark.marker,
            second=mark.points,
            comment=chosen_from(mark.text).comment,
        )
        for task in tasks
        if (mark := second.get((task.row, chosen.get(task.row, "")))) is not None
        and mark.points is not None
        and task.given.points is not None
    )
    differences = [pair.second - pair.first for pair in pairs]
    return Agreement(
        target=target,
        chosen=sum(task.row in chosen for task in tasks),
        pairs=pairs,
        equal=statistics.mean(difference == 0 for difference in differences) if pairs else None,
        mean_difference=statistics.mean(differences) if pairs else None,
        mean_distance=statistics.mean(map(abs, differences)) if pairs else None,
        correlation=_correlation(pairs),
    )


def _correlation(pairs: Sequence[MarkedTwice]) -> float | None:
    try:
        return statistics.correlation([pair.first for pair in pairs], [pair.second for pair in pairs])
    except statistics.StatisticsError:  # fewer than two, or all the same
        return None
