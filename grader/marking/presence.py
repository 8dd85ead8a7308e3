"""Who has a task open: visible to all, and over after ten minutes without activity.

Whoever opened a task first holds it, and is offered it; others may look and even save, as the versions of
marks protect both. Nobody takes a hold away by opening a page.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from grader.marking.desk import Desk

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
    raise NotImplementedError


def present(desk: Desk, target: str, handle: str, now: datetime) -> tuple[Present, ...]:
    """All who have the task open, the one who holds it first."""
    raise NotImplementedError


def leave(desk: Desk, target: str, handle: str, marker: str) -> None:
    """Note that a marker closed the task, or went on to another one."""
    raise NotImplementedError
