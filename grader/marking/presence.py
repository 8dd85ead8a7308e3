"""Who has a task open: visible to all, and over after ten minutes without activity.

Whoever opened a task first holds it, and is offered it; others may look and even save, as the versions of
marks protect both. Nobody takes a hold away by opening a page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grader.gradebook.marker_records import PresenceRecord
from grader.marking.desk import Desk, current_records, required_task

EXPIRES = timedelta(minutes=10)


@dataclass(frozen=True)
class Present:
    """Somebody who has a task open.

    Attributes:
        since: When they opened it.
        active: Their last activity.
        holds: Whether they opened it first of all who are there.
    """

    marker: str
    since: datetime
    active: datetime
    holds: bool


def touch(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> tuple[Present, ...]:
    """Note that a marker has the task open and is active.

    Returns:
        All who have it open, the one who holds it first.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        row = required_task(records, target, handle).row
        here = records.markers.present(target, row, now - EXPIRES)
        since = next((one.since for one in here if one.marker == marker), now)
        records.markers.touch(target, row, marker, since, now)
        return _shown(records.markers.present(target, row, now - EXPIRES))


def present(desk: Desk, target: str, handle: str, now: datetime) -> tuple[Present, ...]:
    """All who have the task open, the one who holds it first.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk) as records:
        row = required_task(records, target, handle).row
        return _shown(records.markers.present(target, row, now - EXPIRES))


def leave(desk: Desk, target: str, handle: str, marker: str) -> None:
    """Note that a marker closed the task, or went on to another one.

    Raises:
        UnknownTask: There is no such task.
    """
    with current_records(desk, writes=True) as records:
        records.markers.leave(target, required_task(records, target, handle).row, marker)


def _shown(here: Sequence[PresenceRecord]) -> tuple[Present, ...]:
    return tuple(
        Present(one.marker, one.since, one.active, holds=number == 0) for number, one in enumerate(here)
    )
