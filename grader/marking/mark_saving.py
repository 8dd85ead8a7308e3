"""Opens a task for a marker, and saves marks so that nobody overwrites a colleague's unseen.

A mark is saved as the same edit that a marking sheet or `grader marks set` gives, for a whole team, after
the same checks, and never lowers a released grade unless that is allowed. The pages of the class are written
later: whoever runs a console calls `grader.results.class_pages.write_pages` when markers pause, and every
command writes them first if they are behind.
"""

from dataclasses import dataclass
from datetime import datetime

from grader.domain.errors import UsageError
from grader.marking.desk import Desk


@dataclass(frozen=True)
class ChosenMark:
    """What a marker chooses for a part.

    Attributes:
        items: Ids of the part's rubric items.
        points: Points given by hand; None: those that the items and the adjustment give.
        adjustment: Points in addition to those that the items give.
        reason: Why it is adjusted; markers read it, students do not.
        comment: Free text for the student.
        remarks: Ids of the comment bank.
    """

    items: tuple[str, ...] = ()
    points: float | None = None
    adjustment: float = 0.0
    reason: str = ""
    comment: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredMark:
    """A mark in the gradebook.

    Attributes:
        version: Its number in the gradebook; each later mark has a larger one.
        points: None: the mark before was withdrawn.
        items: Rubric item -> its points when the mark was given.
        adjustment: Points in addition to those that the items gave.
        remarks: Id -> text of the other comments.
        why: The reason of the adjustment or withdrawal.
        sheet: The marking sheet from which it came; empty: it came in another way.
        earlier_attempt: Whether it was about files that the student replaced since.
    """

    version: int
    points: float | None
    marker: str
    when: datetime
    comment: str
    remarks: tuple[tuple[str, str], ...]
    items: tuple[tuple[str, float], ...]
    adjustment: float
    why: str
    sheet: str
    earlier_attempt: bool


@dataclass(frozen=True)
class Draft:
    """What a marker has not saved yet.

    Attributes:
        drawn_from: The version of the mark that the page showed.
        is_outdated: Whether somebody saved a mark since.
    """

    chosen: ChosenMark
    drawn_from: int
    when: datetime
    is_outdated: bool


@dataclass(frozen=True)
class OpenedTask:
    """Everything but the submission itself that a marker sees of a task.

    Attributes:
        start: The points that a mark without rubric items has: the maximum, or 0.
        by_person: Whether a person marks it for everybody.
        mark: The mark that stands; None: none, or this marker is the second one and marks blindly.
        version: To be given to `save_mark`; 0: no mark was ever given.
        history: All marks of this task, oldest first; () for a second marker who has not marked it yet.
        draft: This marker's draft; None: there is none.
        team: How many students handed it in together; 1: a student alone.
        assigned: To whom it is assigned; empty: to nobody.
        second: Whether the asking marker marks it as the second one.
    """

    target: str
    handle: str
    title: str
    maximum: float
    start: float
    by_person: bool
    mark: StoredMark | None
    version: int
    history: tuple[StoredMark, ...]
    draft: Draft | None
    team: int
    assigned: str
    second: bool


class Conflict(UsageError):
    """Somebody else saved a mark since the page was drawn. Nothing was saved.

    Attributes:
        theirs: The mark that stands now; its `version` is the one to save over it with.
        yours: What was to be saved; it is kept as a draft.
    """

    def __init__(self, theirs: StoredMark, yours: ChosenMark) -> None:
        self.theirs, self.yours = theirs, yours
        super().__init__(f"{theirs.marker} saved a mark meanwhile. Choose one of both and save again.")


@dataclass(frozen=True)
class SavedMark:
    """A mark that was saved.

    Attributes:
        stored: The mark; None: it equals the one before, so that nothing was added.
        version: The version that stands now.
        notes: What stays as it is for other members of a team, one sentence each.
        changes: The totals that changed, as `400101204: 41 -> 44`. Not for blind pages.
    """

    stored: StoredMark | None
    version: int
    notes: tuple[str, ...]
    changes: tuple[str, ...]


def opened_task(desk: Desk, target: str, handle: str, marker: str, now: datetime) -> OpenedTask:
    """The task as one marker sees it. Opening takes nothing from anybody: see `presence.touch`.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def save_mark(
    desk: Desk,
    target: str,
    handle: str,
    chosen: ChosenMark,
    marker: str,
    now: datetime,
    *,
    drawn_from: int,
    allow_lower: bool = False,
) -> SavedMark:
    """Save a mark for a submission, and drop this marker's draft and skip.

    A second marker's mark is kept beside the first one and changes no grade: see `second_marking`.

    Args:
        drawn_from: The version of the mark that the marker saw (`OpenedTask.version`).
        allow_lower: A grade that was released may fall.

    Raises:
        Conflict: Somebody saved a mark since.
        MarkRefused: Points or comments are not allowed, each with a reason.
        UsageError: A released grade would fall, or an adjustment has no reason.
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def withdraw_mark(
    desk: Desk,
    target: str,
    handle: str,
    marker: str,
    now: datetime,
    *,
    why: str,
    drawn_from: int,
    allow_lower: bool = False,
) -> SavedMark:
    """Take back the mark of a submission, so that it is unmarked again. The student reads the reason.

    Raises:
        Conflict: Somebody saved a mark since.
        UsageError: There is no reason, or a released grade would fall.
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def keep_draft(
    desk: Desk, target: str, handle: str, chosen: ChosenMark, marker: str, now: datetime, *, drawn_from: int
) -> None:
    """Keep what a marker has entered so far, in place of the earlier draft. It is not checked.

    Raises:
        UnknownTask: There is no such task.
    """
    raise NotImplementedError


def drop_draft(desk: Desk, target: str, handle: str, marker: str) -> None:
    """Forget a marker's draft, if there is one."""
    raise NotImplementedError
