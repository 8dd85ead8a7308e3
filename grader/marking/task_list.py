"""What there is to mark, question by question, and what comes next for whom.

The order of the submissions differs between questions, and is the same for everybody and every time: it is
drawn from the class's salt and the question, so that it depends neither on names nor on when something was
graded.
"""

from dataclasses import dataclass
from datetime import datetime

from grader.marking.desk import Desk


@dataclass(frozen=True)
class MarkedQuestion:
    """A part that people mark, with its progress; a team counts once.

    Attributes:
        target: `q6`, or `q10.patches`.
        beside: The evidence that belongs next to it: see `RubricItem.beside`.
        by_person: Whether a person marks it for everybody; otherwise the grader was undecided in these tasks.
        tasks: The number of submissions.
        marked: How many of them have a mark.
        left: How many have none.
        mine: How many the asking marker has marked.
        mine_left: How many of those left are assigned to the asking marker, or to nobody.
        flagged: How many have a flag.
    """

    target: str
    item: str
    title: str
    maximum: float
    beside: tuple[str, ...]
    by_person: bool
    tasks: int
    marked: int
    left: int
    mine: int
    mine_left: int
    flagged: int


@dataclass(frozen=True)
class TaskLine:
    """A submission in the list of a question, in the question's order.

    Attributes:
        marked: Whether a mark stands; `points` and `marker` are empty otherwise, and hidden from a second
            marker who has not marked it yet.
        holder: Who has it open first, other than the asking marker; empty: nobody.
        assigned: To whom it is assigned; empty: to nobody.
        second: Who marks it a second time; empty: nobody.
        flagged: Whether somebody flagged it.
        skipped: Whether the asking marker skipped it.
    """

    handle: str
    marked: bool
    points: float | None
    marker: str
    holder: str
    assigned: str
    second: str
    flagged: bool
    skipped: bool


def questions(desk: Desk, marker: str, now: datetime) -> tuple[MarkedQuestion, ...]:
    """All parts that people mark, in the rubric's order."""
    raise NotImplementedError


def task_lines(desk: Desk, target: str, marker: str, now: datetime) -> tuple[TaskLine, ...]:
    """The submissions of a question in its order.

    Raises:
        UnknownTask: There is no such question.
    """
    raise NotImplementedError


def tasks_of_submission(desk: Desk, handle: str, now: datetime) -> tuple[str, ...]:
    """The targets of a submission in the rubric's order, for marking by student.

    Raises:
        UnknownTask: There is no such submission.
    """
    raise NotImplementedError


def next_unmarked(desk: Desk, target: str, marker: str, now: datetime, *, after: str = "") -> str | None:
    """The handle of the next submission that this marker should mark; None if there is none left.

    It goes round once, and leaves out what is marked, was skipped by this marker, is assigned to somebody
    else, or is held by somebody else. If this marker is a second marker, second marks that are due come
    after all first ones.

    Args:
        after: The handle of the submission that was marked last; empty: from the beginning.

    Raises:
        UnknownTask: There is no such question, or no such submission.
    """
    raise NotImplementedError


def neighbor(desk: Desk, target: str, handle: str, step: int, now: datetime) -> str | None:
    """The handle of the submission that stands `step` places later in the order (-1: before); None: none.

    Raises:
        UnknownTask: There is no such question or submission.
    """
    raise NotImplementedError
