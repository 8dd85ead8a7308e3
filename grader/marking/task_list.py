"""What there is to mark, question by question, and what comes next for whom.

The order of the submissions differs between questions, and is the same for everybody and every time: it is
drawn from the class's salt and the question, so that it depends neither on names nor on when something was
graded.
"""

from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import part_target
from grader.gradebook.task_records import ListedTask, QuestionCounts
from grader.marking.desk import Desk, UnknownTask, current_records, require_question, required_task
from grader.marking.presence import EXPIRES


@dataclass(frozen=True)
class MarkedQuestion:
    """A part that people mark, with its progress; a team counts once, and is left until all have a mark.

    Attributes:
        target: `q6`, or `q10.patches`.
        beside: The evidence that belongs next to it: see `RubricItem.beside`.
        by_person: Whether a person marks it for everybody; otherwise the grader was undecided in these tasks.
        tasks: The number of submissions.
        marked: How many of them have a mark.
        left: How many have none.
        mine: How many the asking marker has marked.
        mine_left: How many the asking marker should still mark: those left that are assigned to them or to
            nobody, and their second marks that are due.
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
        marked: Whether a mark stands; for the second marker, whether theirs does.
        points: None without a mark, and for the second marker; `marker` is empty then.
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


def questions(desk: Desk, marker: str, *, only: str = "") -> tuple[MarkedQuestion, ...]:
    """All parts that people mark, in the rubric's order.

    Args:
        only: Only this target; empty: all.
    """
    assignment = desk.assignment
    with current_records(desk) as records:
        counts = records.tasks.counts(marker, only)
    shown = []
    for item in assignment.rubric:
        parts = [(part_target(item, part), f"{item.title}: {part.title}", part.points) for part in item.parts]
        for target, title, maximum in parts or [(item.id, item.title, item.points)]:
            if (number := counts.get(target, QuestionCounts())).tasks == 0:
                continue
            shown.append(
                MarkedQuestion(
                    target=target,
                    item=item.id,
                    title=title,
                    maximum=maximum,
                    beside=item.beside,
                    by_person=item.by_person,
                    tasks=number.tasks,
                    marked=number.tasks - number.left,
                    left=number.left,
                    mine=number.mine,
                    mine_left=number.mine_left,
                    flagged=number.flagged,
                )
            )
    return tuple(shown)


def task_lines(desk: Desk, target: str, marker: str, now: datetime) -> tuple[TaskLine, ...]:
    """The submissions of a question in its order.

    Raises:
        UnknownTask: There is no such question.
    """
    require_question(desk, target)
    with current_records(desk) as records:
        listed = records.tasks.listed(target, marker, now - EXPIRES)
    return tuple(_line(found, marker) for found in listed)


def tasks_of_submission(desk: Desk, handle: str) -> tuple[str, ...]:
    """The targets of a submission in the rubric's order, for marking by student.

    Raises:
        UnknownTask: There is no such submission.
    """
    with current_records(desk) as records:
        targets = set(records.tasks.targets_of(handle))
    if not targets:
        raise UnknownTask(f"There is no submission '{handle}'. Go back to the list.")
    return tuple(target for target in desk.assignment.mark_targets() if target in targets)


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
    require_question(desk, target)
    with current_records(desk) as records:
        place = required_task(records, target, after).place if after else None
        found = records.tasks.next_open(target, marker, place, now - EXPIRES)
        return found or records.tasks.next_second(target, marker, place)


def neighbor(desk: Desk, target: str, handle: str, step: int) -> str | None:
    """The handle of the submission that stands `step` places later in the order (-1: before); None: none.

    Raises:
        UnknownTask: There is no such question or submission.
    """
    with current_records(desk) as records:
        place = required_task(records, target, handle).place
        return records.tasks.handle_beside(target, place, step) if step else handle


def _line(found: ListedTask, marker: str) -> TaskLine:
    """A task as a marker sees it in a list."""
    given, blind = found.task.given, found.second == marker
    return TaskLine(
        handle=found.task.handle,
        marked=found.second_done if blind else not found.task.open,
        points=None if blind else given.points,
        marker="" if blind else given.marker,
        holder=found.holder,
        assigned=found.assigned,
        second=found.second,
        flagged=found.flagged,
        skipped=found.skipped,
    )
