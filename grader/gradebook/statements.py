"""The statements about one assignment's rows. Rows are read and added: there is no UPDATE and no DELETE."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import (
    ColumnElement,
    Connection,
    SelectBase,
    Table,
    func,
    insert,
    select,
    tuple_,
    union,
)

from grader.domain.edit import Edit, Listed, RunChosen
from grader.domain.total import Total
from grader.gradebook.listing import Listing, listing
from grader.gradebook.records import edit_of, kind_of, total_of, total_values
from grader.gradebook.tables import DOWNLOADS, EDITS, IMAGES, RUN_IMAGES, RUNS, TOTALS


@dataclass(frozen=True)
class State:
    """How far the book is: nothing was added between two equal states."""

    last_run: int
    last_edit: int
    last_total: int
    last_download: int


def of(table: Table, assignment_id: str, student_id: str | None = None) -> ColumnElement[bool]:
    """The rows about an assignment, or about one student in it."""
    about: ColumnElement[bool] = table.c.assignment_id == assignment_id
    return about if student_id is None else about & (table.c.student_id == student_id)


def state_of(connection: Connection, assignment_id: str) -> State:
    """How far the book is with the assignment."""
    last = [
        connection.execute(select(func.max(table.c.id)).where(of(table, assignment_id))).scalar() or 0
        for table in (RUNS, EDITS, TOTALS, DOWNLOADS)
    ]
    return State(*last)


def chosen_runs(connection: Connection, assignment_id: str, student_id: str | None = None) -> dict[str, int]:
    """Student -> the number of the run that was decided to count; of all others, the latest does."""
    chosen = of(EDITS, assignment_id, student_id) & (EDITS.c.kind == kind_of(RunChosen))
    found: dict[str, int] = {}
    for edit in map(edit_of, connection.execute(select(EDITS).where(chosen).order_by(EDITS.c.id))):
        number = edit.number if isinstance(edit, RunChosen) and edit.number is not None else edit.run
        if edit.student_id is not None and number is not None:
            found[edit.student_id] = number
    return found


def counting_runs(connection: Connection, assignment_id: str) -> SelectBase:
    """The ids of the runs that count, one for each student."""
    latest = select(func.max(RUNS.c.id)).where(of(RUNS, assignment_id)).group_by(RUNS.c.student_id)
    chosen = chosen_runs(connection, assignment_id)
    if not chosen:
        return latest
    decided = tuple_(RUNS.c.student_id, RUNS.c.number).in_(list(chosen.items()))
    return union(
        latest.where(RUNS.c.student_id.not_in(chosen.keys())),
        select(RUNS.c.id).where(of(RUNS, assignment_id), decided),
    )


def last_number(connection: Connection, assignment_id: str, student_id: str) -> int:
    """The number of the student's latest run, 0 when there is none."""
    numbers = select(func.max(RUNS.c.number)).where(of(RUNS, assignment_id, student_id))
    return connection.execute(numbers).scalar() or 0


def last_numbers(connection: Connection, assignment_id: str) -> dict[str, int]:
    """Student -> the number of the latest run."""
    numbers = select(RUNS.c.student_id, func.max(RUNS.c.number).label("last"))
    rows = connection.execute(numbers.where(of(RUNS, assignment_id)).group_by(RUNS.c.student_id))
    return {row.student_id: row.last for row in rows}


def listing_of(connection: Connection, assignment_id: str) -> Listing:
    """Under which ids the rows are listed."""
    said = of(EDITS, assignment_id) & (EDITS.c.kind == kind_of(Listed))
    wanted = select(EDITS).where(said).order_by(EDITS.c.id)
    edits = tuple(map(edit_of, connection.execute(wanted)))
    if not edits:
        return Listing()  # each under its own
    return listing(
        connection.scalars(select(RUNS.c.student_id).where(of(RUNS, assignment_id)).distinct()), edits
    )


def edits_of(
    connection: Connection, assignment_id: str, student_ids: Collection[str] = ()
) -> tuple[Edit, ...]:
    """The edits about all students, or about some, and about the whole class, oldest first."""
    wanted = select(EDITS).where(of(EDITS, assignment_id)).order_by(EDITS.c.id)
    if student_ids:
        wanted = wanted.where(EDITS.c.student_id.is_(None) | EDITS.c.student_id.in_(student_ids))
    return tuple(map(edit_of, connection.execute(wanted)))


def totals_of(connection: Connection, assignment_id: str, student_id: str | None = None) -> tuple[Total, ...]:
    """The totals of all students, or of one, oldest first."""
    rows = connection.execute(
        select(TOTALS).where(of(TOTALS, assignment_id, student_id)).order_by(TOTALS.c.id)
    )
    return tuple(map(total_of, rows))


def accounts_of(connection: Connection, assignment_id: str) -> dict[str, str]:
    """Download -> its last account, in the order in which these were added."""
    wanted = select(DOWNLOADS.c.source, DOWNLOADS.c.record).where(of(DOWNLOADS, assignment_id))
    found: dict[str, str] = {}
    for row in connection.execute(wanted.order_by(DOWNLOADS.c.id)):
        found.pop(row.source, None)  # it comes after those that were added since
        found[row.source] = row.record
    return found


def add_images(connection: Connection, run_id: int, images: Mapping[str, bytes]) -> None:
    """Add a run's images by name, each content once for the whole book."""
    if not images:
        return
    digests = {name: sha256(content).hexdigest() for name, content in images.items()}
    there = set(connection.scalars(select(IMAGES.c.digest).where(IMAGES.c.digest.in_(set(digests.values())))))
    new = {digests[name]: content for name, content in images.items() if digests[name] not in there}
    if new:
        rows = [{"digest": digest, "content": content} for digest, content in new.items()]
        connection.execute(insert(IMAGES), rows)
    connection.execute(
        insert(RUN_IMAGES),
        [{"run_id": run_id, "name": name, "digest": digest} for name, digest in digests.items()],
    )


def add_totals(connection: Connection, assignment_id: str, totals: Sequence[Total]) -> None:
    """Add the totals that differ from the last ones, or tell of lateness where those do not."""
    if not totals:
        return
    only = totals[0].student_id if len(totals) == 1 else None
    last = {total.student_id: total for total in totals_of(connection, assignment_id, only)}
    new = [
        total
        for total in totals
        if (before := last.get(total.student_id)) is None
        or not total.says_the_same_as(before)
        or (before.lateness is None and total.lateness is not None)
    ]
    if new:
        connection.execute(insert(TOTALS), [total_values(assignment_id, total) for total in new])
