"""The list of tasks of people who mark together: its rows, and what is asked of them."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Exists,
    Row,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from grader.gradebook.marking_tables import ALLOCATIONS, BASIS, FLAGS, PRESENCE, SECONDS, SKIPS, TASKS
from grader.gradebook.records import stamp
from grader.gradebook.statements import rows_about


@dataclass(frozen=True)
class Basis:
    """What the tasks of an assignment were made from.

    Attributes:
        last_run, last_edit: The last rows of the gradebook that they follow.
        targets: A digest of the parts that people mark.
    """

    last_run: int
    last_edit: int
    targets: str


@dataclass(frozen=True)
class GivenPoints:
    """The mark of a task that stands.

    Attributes:
        mark: The id of the last decision about it; 0: there is none.
        points: None: there is none, it was withdrawn, or it does not fit the rubric any more.
        marker: Who gave it; empty without points.
        marked_at: As `records.stamp` writes it; empty without points.
    """

    mark: int = 0
    points: float | None = None
    marker: str = ""
    marked_at: str = ""


@dataclass(frozen=True)
class TaskRow:
    """A student's part that people mark.

    Attributes:
        row: The student's row of the gradebook.
        handle: Of the submission, the same for a team.
        place: In the order of its question.
        leader: The row of the team's first member; the own one if there is no team.
        team: The number of students with this submission.
        open: Whether it is to be marked: for a team, at its leader.
    """

    target: str
    row: str
    handle: str
    place: int
    leader: str
    team: int
    open: bool
    maximum: float
    given: GivenPoints


@dataclass(frozen=True)
class QuestionCounts:
    """How many tasks a question has: see `grader.marking.task_list.MarkedQuestion`."""

    tasks: int = 0
    left: int = 0
    mine: int = 0
    mine_left: int = 0
    flagged: int = 0


@dataclass(frozen=True)
class ListedTask:
    """A task with what belongs to it in a list: see `grader.marking.task_list.TaskLine`."""

    task: TaskRow
    holder: str
    assigned: str
    second: str
    flagged: bool
    skipped: bool
    second_done: bool


class TaskRecords:
    """The tasks of one assignment.

    Args:
        connection: To the gradebook; within a transaction.
    """

    def __init__(self, connection: Connection, assignment_id: str) -> None:
        self._connection = connection
        self._assignment_id = assignment_id

    # --- making ------------------------------------------------------------------------------------------

    def basis(self) -> Basis | None:
        """What the tasks were made from; None: there are none yet."""
        query = select(BASIS.c.last_run, BASIS.c.last_edit, BASIS.c.targets)
        row = self._connection.execute(query.where(rows_about(BASIS, self._assignment_id))).one_or_none()
        return Basis(row.last_run, row.last_edit, row.targets) if row is not None else None

    def set_basis(self, basis: Basis) -> None:
        """Note what the tasks were made from."""
        self._connection.execute(delete(BASIS).where(rows_about(BASIS, self._assignment_id)))
        values = {"assignment_id": self._assignment_id, **asdict(basis)}
        self._connection.execute(insert(BASIS), values)

    def replace(self, tasks: Sequence[TaskRow], rows: Collection[str] | None = None) -> None:
        """Put these tasks in place of the former ones; only those that differ are written.

        Args:
            rows: All tasks of these rows are replaced; None: those of all.
        """
        of_rows = rows_about(TASKS, self._assignment_id)
        if rows is not None:
            of_rows &= TASKS.c.student_id.in_(rows)
        former = {_task(row) for row in self._connection.execute(select(TASKS).where(of_rows))}
        new = set(tasks)
        gone, added = former - new, new - former
        if gone:
            one = self._task_of(bindparam("gone_target"), bindparam("gone_row"))
            keys = [{"gone_target": task.target, "gone_row": task.row} for task in gone]
            self._connection.execute(delete(TASKS).where(one), keys)
        if added:
            self._connection.execute(insert(TASKS), [self._values(task) for task in added])

    def give(self, target: str, row: str, given: GivenPoints) -> None:
        """Note the mark of a row that stands now, and whether the task is still open."""
        task = self._task_of(target, row)
        self._connection.execute(update(TASKS).where(task).values(**asdict(given)))
        leader = self._connection.execute(select(TASKS.c.leader).where(task)).scalar_one_or_none()
        if leader is not None:
            members = (
                rows_about(TASKS, self._assignment_id)
                & (TASKS.c.target == target)
                & (TASKS.c.leader == leader)
            )
            unmarked = select(exists().where(members & TASKS.c.points.is_(None)))
            is_open = self._connection.execute(unmarked).scalar_one()
            of_leader = update(TASKS).where(self._task_of(target, leader))
            self._connection.execute(of_leader.values(open=bool(is_open)))

    def _values(self, task: TaskRow) -> dict[str, Any]:
        return {
            "assignment_id": self._assignment_id,
            "target": task.target,
            "student_id": task.row,
            "handle": task.handle,
            "place": task.place,
            "leader": task.leader,
            "team": task.team,
            "open": task.open,
            "maximum": task.maximum,
            **asdict(task.given),
        }

    def _task_of(
        self, target: str | BindParameter[str], row: str | BindParameter[str]
    ) -> ColumnElement[bool]:
        about = rows_about(TASKS, self._assignment_id)
        return about & (TASKS.c.student_id == row) & (TASKS.c.target == target)

    # --- asking ------------------------------------------------------------------------------------------

    def leaders(self, target: str) -> ColumnElement[bool]:
        """The tasks of a question, a team's once."""
        of_question = rows_about(TASKS, self._assignment_id) & (TASKS.c.target == target)
        return of_question & (TASKS.c.leader == TASKS.c.student_id)

    def task(self, target: str, handle: str) -> TaskRow | None:
        """A task by its handle; for a team, that of its leader."""
        query = select(TASKS).where(self.leaders(target), TASKS.c.handle == handle)
        row = self._connection.execute(query).one_or_none()
        return _task(row) if row is not None else None

    def of_question(self, target: str) -> list[TaskRow]:
        """The tasks of a question in its order, a team's once."""
        query = select(TASKS).where(self.leaders(target)).order_by(TASKS.c.place, TASKS.c.student_id)
        return [_task(row) for row in self._connection.execute(query)]

    def targets_of(self, handle: str) -> list[str]:
        """The targets of the tasks of a submission, in any order."""
        query = select(TASKS.c.target).where(
            rows_about(TASKS, self._assignment_id),
            TASKS.c.handle == handle,
            TASKS.c.leader == TASKS.c.student_id,
        )
        return list(self._connection.scalars(query))

    def rows_of(self, handle: str) -> list[str]:
        """The rows of a submission, its leader's first."""
        query = select(TASKS.c.student_id, TASKS.c.leader).where(
            rows_about(TASKS, self._assignment_id), TASKS.c.handle == handle
        )
        rows = {row.student_id: row.leader for row in self._connection.execute(query)}
        return sorted(rows, key=lambda row: (row != rows[row], row))

    def handle_of(self, row: str) -> str | None:
        """The handle of a row's submission."""
        query = select(TASKS.c.handle).where(rows_about(TASKS, self._assignment_id, row)).limit(1)
        handle: str | None = self._connection.execute(query).scalar_one_or_none()
        return handle

    def handles(self) -> dict[str, str]:
        """Row -> the handle of its submission."""
        query = (
            select(TASKS.c.student_id, TASKS.c.handle)
            .where(rows_about(TASKS, self._assignment_id))
            .distinct()
        )
        return {row.student_id: row.handle for row in self._connection.execute(query)}

    def rows_with(self, rows: Collection[str]) -> set[str]:
        """These rows, and those that are or were in a team with one of them."""
        leaders = select(TASKS.c.leader).where(
            rows_about(TASKS, self._assignment_id), TASKS.c.student_id.in_(rows)
        )
        query = select(TASKS.c.student_id).where(
            rows_about(TASKS, self._assignment_id), TASKS.c.leader.in_(leaders)
        )
        return {*rows, *self._connection.scalars(query.distinct())}

    def handle_beside(self, target: str, place: int, step: int) -> str | None:
        """The handle of the task that many places later (before, if negative) in the order of a question."""
        query = select(TASKS.c.handle).where(self.leaders(target))
        if step > 0:
            query = query.where(TASKS.c.place > place).order_by(TASKS.c.place)
        else:
            query = query.where(TASKS.c.place < place).order_by(TASKS.c.place.desc())
        return self._connection.execute(query.offset(abs(step) - 1).limit(1)).scalar_one_or_none()

    def next_open(self, target: str, marker: str, after: int | None, active: datetime) -> str | None:
        """The handle of the next task without a mark that this marker may take: see `next_unmarked`.

        Args:
            after: The place to begin behind; None: at the beginning.
            active: Whoever was active since then still has it open.
        """
        free = (
            TASKS.c.open.is_(True),
            not_(_second_of(marker)),
            not_(_others_hold(marker, active)),
            not_(_skipped(marker)),
            not_(_beside(ALLOCATIONS, ALLOCATIONS.c.second.is_(False), ALLOCATIONS.c.marker != marker)),
        )
        return self._next(target, free, after)

    def next_second(self, target: str, marker: str, after: int | None) -> str | None:
        """The handle of the next task that this marker still has to mark as the second one."""
        due = (_second_of(marker), not_(_second_done(marker)), not_(_skipped(marker)))
        return self._next(target, due, after)

    def _next(self, target: str, conditions: Sequence[ColumnElement[bool]], after: int | None) -> str | None:
        query = select(TASKS.c.handle).where(self.leaders(target), *conditions).order_by(TASKS.c.place)
        if after is None:
            return self._connection.execute(query.limit(1)).scalar_one_or_none()
        for part in (TASKS.c.place > after, TASKS.c.place <= after):
            handle: str | None = self._connection.execute(query.where(part).limit(1)).scalar_one_or_none()
            if handle is not None:
                return handle
        return None

    def counts(self, marker: str, target: str = "") -> dict[str, QuestionCounts]:
        """Target -> its counts; parts without tasks are left out.

        Args:
            target: Only of this one; empty: of all.
        """
        others = _beside(ALLOCATIONS, ALLOCATIONS.c.second.is_(False), ALLOCATIONS.c.marker != marker)
        is_mine = and_(TASKS.c.points.is_not(None), TASKS.c.marker == marker)
        first_due = and_(TASKS.c.open.is_(True), not_(_second_of(marker)), not_(others))
        second_due = and_(_second_of(marker), not_(_second_done(marker)))
        query = (
            select(
                TASKS.c.target,
                func.count().label("tasks"),
                _number_of(TASKS.c.open.is_(True)).label("left"),
                _number_of(is_mine).label("mine"),
                _number_of(or_(first_due, second_due)).label("mine_left"),
                _number_of(_beside(FLAGS)).label("flagged"),
            )
            .where(rows_about(TASKS, self._assignment_id), TASKS.c.leader == TASKS.c.student_id)
            .group_by(TASKS.c.target)
        )
        if target:
            query = query.where(TASKS.c.target == target)
        return {
            row.target: QuestionCounts(row.tasks, row.left, row.mine, row.mine_left, row.flagged)
            for row in self._connection.execute(query)
        }

    def listed(self, target: str, marker: str, active: datetime) -> list[ListedTask]:
        """The tasks of a question with what belongs to them, in its order."""
        holder = (
            select(PRESENCE.c.marker)
            .where(_same_task(PRESENCE), PRESENCE.c.marker != marker, PRESENCE.c.active >= stamp(active))
            .order_by(PRESENCE.c.since, PRESENCE.c.marker)
            .limit(1)
            .scalar_subquery()
        )
        first, second = (
            select(ALLOCATIONS.c.marker)
            .where(_same_task(ALLOCATIONS), ALLOCATIONS.c.second.is_(is_second))
            .scalar_subquery()
            for is_second in (False, True)
        )
        query = (
            select(
                TASKS,
                holder.label("holder"),
                first.label("assigned"),
                second.label("second"),
                _beside(FLAGS).label("flagged"),
                _skipped(marker).label("skipped"),
                _second_done(marker).label("second_done"),
            )
            .where(self.leaders(target))
            .order_by(TASKS.c.place, TASKS.c.student_id)
        )
        return [
            ListedTask(
                _task(row),
                row.holder or "",
                row.assigned or "",
                row.second or "",
                bool(row.flagged),
                bool(row.skipped),
                bool(row.second_done),
            )
            for row in self._connection.execute(query)
        ]


def given_points(mark: int, points: float | None, marker: str, when: datetime, maximum: float) -> GivenPoints:
    """The mark of a task after a decision about it.

    Args:
        mark: The decision's id.
        maximum: Of the task: more points than that are no mark.
    """
    if points is None or not 0 <= points <= maximum:
        return GivenPoints(mark)
    return GivenPoints(mark, points, marker, stamp(when))


def _task(row: Row[Any]) -> TaskRow:
    given = GivenPoints(row.mark, row.points, row.marker, row.marked_at)
    return TaskRow(
        row.target,
        row.student_id,
        row.handle,
        row.place,
        row.leader,
        row.team,
        bool(row.open),
        row.maximum,
        given,
    )


def _same_task(table: Table) -> ColumnElement[bool]:
    """The rows of another table about the task of the outer query."""
    return and_(*(table.c[name] == TASKS.c[name] for name in ("assignment_id", "target", "student_id")))


def _beside(table: Table, *conditions: ColumnElement[bool]) -> Exists:
    return exists(select(table.c.target).where(_same_task(table), *conditions).correlate(TASKS))


def _others_hold(marker: str, active: datetime) -> Exists:
    return _beside(PRESENCE, PRESENCE.c.marker != marker, PRESENCE.c.active >= stamp(active))


def _skipped(marker: str) -> Exists:
    return _beside(SKIPS, SKIPS.c.marker == marker)


def _second_of(marker: str) -> Exists:
    return _beside(ALLOCATIONS, ALLOCATIONS.c.second.is_(True), ALLOCATIONS.c.marker == marker)


def _second_done(marker: str) -> Exists:
    return _beside(SECONDS, SECONDS.c.marker == marker)


def _number_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))
