"""Who marks what: by question, share, section or list; skipping, flagging and handing over.

What is assigned to nobody is anybody's. A later assignment replaces an earlier one for the same tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class Flag:
    """A marker's request that somebody else looks at a task."""

    marker: str
    text: str
    when: datetime


@dataclass(frozen=True)
class MarkerNote:
    """A note for markers, which no student sees."""

    marker: str
    text: str
    when: datetime
    target: str


def assign_question(
    desk: Desk, target: str, marker: str, now: datetime, *, by: str, only_unmarked: bool = True
) -> int:
    """Assign all submissions of a question to a marker (empty: to nobody).

    Args:
        by: Who assigns them.

    Returns:
        The number of tasks that are assigned.

    Raises:
        UnknownTask: There is no such question.
    """
    raise NotImplementedError


def assign_shares(
    desk: Desk,
    target: str,
    weights: Mapping[str, float],
    now: datetime,
    *,
    by: str,
    only_unmarked: bool = True,
) -> dict[str, int]:
    """Assign the submissions of a question to several markers, in proportion to their weights.

    Args:
        weights: Marker -> a positive number.

    Returns:
        Marker -> the number of tasks.

    Raises:
        UnknownTask: There is no such question.
        UsageError: A weight is not positive.
    """
    raise NotImplementedError


def assign_sections(
    desk: Desk,
    target: str,
    sections: Mapping[str, str],
    markers: Mapping[str, str],
    now: datetime,
    *,
    by: str,
    only_unmarked: bool = True,
) -> dict[str, int]:
    """Assign the submissions of a question by the sections of the students; for a team, of its first one.

    Args:
        sections: Student -> section.
        markers: Section -> marker; students of other sections keep whom they have.

    Returns:
        Marker -> the number of tasks.

    Raises:
        UnknownTask: There is no such question.
    """
    raise NotImplementedError


def assign_list(
    desk: Desk, target: str, students: Sequence[str], marker: str, now: datetime, *, by: str
) -> int:
    """Assign the submissions of certain students to a marker (empty: to nobody), marked or not.

    Returns:
        The number of tasks that are assigned.

    Raises:
        UnknownTask: There is no such question, or one of the students has nothing to mark in it.
    """
    raise NotImplementedError


def hand_over(
    desk: Desk, target: str, handle: str, to: str, marker: str, now: datetime, *, text: str = ""
) -> None:
    """Assign one task to somebody else, with a note for them; the own draft is kept.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def skip(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> None:
    """Leave a task out of what is offered to this marker.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def unskip(desk: Desk, target: str, marker: str) -> int:
    """Offer a marker again what they skipped in a question; returns how many that is."""
    raise NotImplementedError


def flag(desk: Desk, target: str, handle: str, text: str, marker: str, now: datetime) -> None:
    """Ask that somebody else looks at a task, with a text for them.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def unflag(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> None:
    """Remove the flags of a task, whoever set them.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def flags(desk: Desk, target: str, handle: str) -> tuple[Flag, ...]:
    """The flags of a task, oldest first."""
    raise NotImplementedError


def add_note(desk: Desk, target: str, handle: str, text: str, marker: str, now: datetime) -> None:
    """Add a note for markers; it stays.

    Args:
        target: The task's; empty: about the whole submission.

    Raises:
        UnknownTask: There is no such submission.
        UsageError: The text is empty or too long.
    """
    raise NotImplementedError


def notes(desk: Desk, handle: str) -> tuple[MarkerNote, ...]:
    """The notes about a submission, in all its parts, oldest first."""
    raise NotImplementedError
