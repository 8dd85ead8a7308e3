"""The tables of a gradebook, the statements on its rows, and the ids under which they are listed.

Rows are only read and added: there is no UPDATE and no DELETE, except in `forgotten_rows`. `gradebook` runs
the statements; `migrations` creates the tables by statements of its own. A row keeps the id that its
submission had when it was first recorded. If the submission turns out to be somebody else's, or nobody's for
now, edits record that, and reading translates the ids. If several submissions are one student's, the one
that a person named last counts. It never opens a database (`database` does), and it never decides whose a
submission is.
"""

import functools
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Float,
    ForeignKey,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    Result,
    Select,
    SelectBase,
    Table,
    Text,
    bindparam,
    func,
    insert,
    select,
    tuple_,
    union,
)

from grader.domain.edit import Edit, OwnerAssigned, Released, RunChosen, current_owner
from grader.domain.run_facts import RunFacts
from grader.domain.score import Total
from grader.gradebook.records import edit_of, evidence_in, facts_in, kind_of, total_of, total_values

METADATA = MetaData()

# One row per examination of a submission. `evidence` is the record itself, the text of
# `records.evidence_text`; the other columns repeat facts that are needed without reading it. Rows of older
# versions have no `facts`.
RUNS = Table(
    "runs",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("status", Text),
    Column("submission_digest", Text, nullable=False),
    Column("assignment_digest", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("data_digest", Text),
    Column("evidence", Text, nullable=False),
    Column("facts", Text),
)

# Images are in the gradebook, so that a run and its images are stored together or not at all, also on
# PostgreSQL. They are stored by content, because students share the hidden test images of the predictions.
IMAGES = Table(
    "images",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
RUN_IMAGES = Table(
    "run_images",
    METADATA,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", ForeignKey("images.digest"), nullable=False),
)

# One row per edit (grader.domain.edit), in the table `decisions`. `kind` names the class of the edit, and
# `content` holds the fields of that class as JSON. `student_id` is null for the whole class. Older gradebooks
# also have a table `edits` with the same edits in another form: it is kept unchanged, and nothing reads it.
EDITS = Table(
    "decisions",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("run", Integer),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("why", Text, nullable=False),
)

# a single row, as old as the table: a random text, on which the choice of the hidden images depends
CLASS_SALT = Table(
    "class_salt",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("salt", Text, nullable=False),
)

# one row per change of a student's total (grader.domain.score)
TOTALS = Table(
    "totals",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text, nullable=False),
    Column("points", Float),
    Column("decided", Float, nullable=False),
    Column("awaiting", Float, nullable=False),
    Column("maximum", Float, nullable=False),
    Column("status", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("final", Float),
    Column("lateness", Text),
    Column("tokens", Integer),
)

# One row per graded download: what became of its files, as JSON. The last one of each source counts.
DOWNLOADS = Table(
    "downloads",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("record", Text, nullable=False),
)

# one row per `grader forget`: the numbers of persons, of rows of each table (JSON) and of files; nobody's id
FORGETTINGS = Table(
    "forgettings",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("persons", Integer, nullable=False),
    Column("rows", Text, nullable=False),
    Column("files", Integer, nullable=False),
)

# one row per file or folder that the grader wrote about the class, so that `grader forget` finds it again
PLACES = Table(
    "places",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("host", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("kind", Text, nullable=False),
)

# all of them, which a writer locks
BOOK = (RUNS, IMAGES, RUN_IMAGES, EDITS, CLASS_SALT, TOTALS, DOWNLOADS, FORGETTINGS, PLACES)


# --- current ids -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurrentIds:
    """The current ids of rows: a submission keeps its row when it turns out to be another student's.

    Attributes:
        id_by_row: Row -> the id of the student under which it is listed.
        row_by_id: Id -> the row that counts for it.
        owner_edits: Row -> the edit that assigned its id; every other row is listed under its first id.
    """

    id_by_row: Mapping[str, str] = field(default_factory=dict)
    row_by_id: Mapping[str, str] = field(default_factory=dict)
    owner_edits: Mapping[str, OwnerAssigned] = field(default_factory=dict)

    def row_of(self, student_id: str) -> str:
        """The row that counts for an id; for an id without one, the row that has the id as its key."""
        return self.row_by_id.get(student_id, student_id)

    def id_of(self, row: str) -> str | None:
        """The id under which a row is listed; None if another row counts for that id."""
        student_id = self.id_by_row.get(row, row)
        return student_id if self.row_by_id.get(student_id, row) == row else None

    def updated(self, edit: Edit) -> Edit | None:
        """An edit about a row as an edit about the row's current id; None if another row counts for that id.

        A release is about the person who got it, whatever turned out about the submission since.
        """
        if isinstance(edit, Released):
            return edit
        student_id = self.id_of(edit.student_id) if edit.student_id is not None else None
        if edit.student_id is None or student_id == edit.student_id:
            return edit
        return None if student_id is None else replace(edit, student_id=student_id)


def current_ids(rows: Iterable[str], edits: Sequence[Edit]) -> CurrentIds:
    """The current ids of rows.

    Args:
        rows: All rows of an assignment in the gradebook.
        edits: Those about rows, oldest first, of any kind.
    """
    edits_by_row: dict[str, list[tuple[int, OwnerAssigned]]] = {row: [] for row in rows}
    for position, edit in enumerate(edits):
        if isinstance(edit, OwnerAssigned) and edit.student_id in edits_by_row:
            edits_by_row[edit.student_id].append((position, edit))
    id_by_row, decisions, ranks = {}, {}, {}
    for row, row_edits in edits_by_row.items():
        owner_edit = current_owner(edit for _, edit in row_edits)
        id_by_row[row] = row if owner_edit is None else owner_edit.listed_as
        ranks[row] = (False, -1)
        if owner_edit is not None:
            decisions[row] = owner_edit
            ranks[row] = (
                owner_edit.by_person,
                max(position for position, edit in row_edits if edit is owner_edit),
            )
    current: dict[str, str] = {}
    for row, student_id in sorted(id_by_row.items()):
        other = current.get(student_id)
        if other is None or ranks[other] < ranks[row]:
            current[student_id] = row
    return CurrentIds(id_by_row, current, decisions)


# --- statements ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A state of the gradebook: nothing was added between two equal states."""

    last_run: int
    last_edit: int
    last_total: int
    last_download: int


def rows_about(table: Table, assignment_id: str, student_id: str | None = None) -> ColumnElement[bool]:
    """The rows about an assignment, or about one student in it."""
    about = _rows_of_assignment(table, assignment_id)
    return about if student_id is None else about & (table.c.student_id == student_id)


@functools.cache
def _rows_of_assignment(table: Table, assignment_id: str) -> ColumnElement[bool]:
    about: ColumnElement[bool] = table.c.assignment_id == assignment_id
    return about


def class_salt_of(connection: Connection) -> str:
    """The random text of the gradebook: see `Gradebook.class_salt`."""
    salt: str = connection.execute(select(CLASS_SALT.c.salt).order_by(CLASS_SALT.c.id).limit(1)).scalar_one()
    return salt


def state_of(connection: Connection, assignment_id: str) -> State:
    """The state of an assignment in the gradebook."""
    last_ids = [
        connection.execute(select(func.max(table.c.id)).where(rows_about(table, assignment_id))).scalar() or 0
        for table in (RUNS, EDITS, TOTALS, DOWNLOADS)
    ]
    return State(*last_ids)


def chosen_runs(connection: Connection, assignment_id: str, student_id: str | None = None) -> dict[str, int]:
    """Student -> the number of the run that counts by decision; for all others, the latest counts."""
    chosen = rows_about(EDITS, assignment_id, student_id) & (EDITS.c.kind == kind_of(RunChosen))
    number_by_student: dict[str, int] = {}
    for edit in map(edit_of, connection.execute(select(EDITS).where(chosen).order_by(EDITS.c.id))):
        number = edit.number if isinstance(edit, RunChosen) and edit.number is not None else edit.run
        if edit.student_id is not None and number is not None:
            number_by_student[edit.student_id] = number
    return number_by_student


def counting_runs(connection: Connection, assignment_id: str) -> SelectBase:
    """The ids of the runs that count, one for each student."""
    latest = select(func.max(RUNS.c.id)).where(rows_about(RUNS, assignment_id)).group_by(RUNS.c.student_id)
    chosen = chosen_runs(connection, assignment_id)
    if not chosen:
        return latest
    decided = tuple_(RUNS.c.student_id, RUNS.c.number).in_(list(chosen.items()))
    return union(
        latest.where(RUNS.c.student_id.not_in(chosen.keys())),
        select(RUNS.c.id).where(rows_about(RUNS, assignment_id), decided),
    )


def facts_of(connection: Connection, ids: SelectBase) -> dict[str, RunFacts]:
    """Row -> facts about one of its runs; damaged records are left out.

    Args:
        ids: Of the runs, one for each row.
    """
    found: dict[str, RunFacts] = {}
    without = []
    for row in connection.execute(
        select(RUNS.c.id, RUNS.c.student_id, RUNS.c.facts).where(RUNS.c.id.in_(ids))
    ):
        facts = facts_in(row.facts)
        if facts is None:
            without.append(row.id)
        else:
            found[row.student_id] = facts
    for id_of_run in without:
        evidence_of = select(RUNS.c.student_id, RUNS.c.evidence).where(RUNS.c.id == id_of_run)
        older = connection.execute(evidence_of).one()
        evidence = evidence_in(older)
        if evidence is not None:
            found[older.student_id] = RunFacts.of(evidence)
    return found


def runs_of(connection: Connection, assignment_id: str, student_id: str) -> Result[Any]:
    """The runs of a row, oldest first: its id, the submission's digest and the evidence."""
    return connection.execute(_runs_of(assignment_id), {"row": student_id})


def last_number(connection: Connection, assignment_id: str, student_id: str) -> int:
    """The number of the student's latest run; 0 if there is none."""
    return connection.execute(_last_number(assignment_id), {"row": student_id}).scalar() or 0


def last_numbers(connection: Connection, assignment_id: str) -> dict[str, int]:
    """Student -> the number of the latest run."""
    numbers = select(RUNS.c.student_id, func.max(RUNS.c.number).label("last"))
    rows = connection.execute(numbers.where(rows_about(RUNS, assignment_id)).group_by(RUNS.c.student_id))
    return {row.student_id: row.last for row in rows}


def current_ids_of(connection: Connection, assignment_id: str) -> CurrentIds:
    """The current ids of an assignment's rows."""
    edits = tuple(map(edit_of, connection.execute(_owner_edits(assignment_id))))
    if not edits:
        return CurrentIds()  # each row has its own id
    return current_ids(
        connection.scalars(select(RUNS.c.student_id).where(rows_about(RUNS, assignment_id)).distinct()), edits
    )


def edits_of(
    connection: Connection, assignment_id: str, student_ids: Collection[str] = ()
) -> tuple[Edit, ...]:
    """The edits about all students, or about some, and about the whole class, oldest first."""
    if student_ids:
        rows = connection.execute(_edits_about(assignment_id), {"rows": list(student_ids)})
    else:
        rows = connection.execute(select(EDITS).where(rows_about(EDITS, assignment_id)).order_by(EDITS.c.id))
    return tuple(map(edit_of, rows))


def totals_of(connection: Connection, assignment_id: str, student_id: str | None = None) -> tuple[Total, ...]:
    """The totals of all students, or of one, oldest first."""
    if student_id is not None:
        rows = connection.execute(_totals_about(assignment_id), {"row": student_id})
    else:
        rows = connection.execute(
            select(TOTALS).where(rows_about(TOTALS, assignment_id)).order_by(TOTALS.c.id)
        )
    return tuple(map(total_of, rows))


def totals_since(connection: Connection, assignment_id: str, last_total: int) -> dict[str, Total]:
    """Row -> the last of the totals with larger numbers than this."""
    about = rows_about(TOTALS, assignment_id) & (TOTALS.c.id > last_total)
    rows = connection.execute(select(TOTALS).where(about).order_by(TOTALS.c.id))
    return {total.student_id: total for total in map(total_of, rows)}


def late_days_of(connection: Connection, assignment_id: str) -> dict[str, dict[str, int]]:
    """Student -> other assignment of the book -> the late days that were used there, by the last total."""
    others = connection.scalars(_others_with_late_days(assignment_id)).all()
    late_days: dict[str, dict[str, int]] = {}
    for other in others:
        ids_now = current_ids_of(connection, other)
        last = {total.student_id: total.late_days_used for total in totals_of(connection, other)}
        for row, days in last.items():
            student_id = ids_now.id_of(row)
            if days and student_id is not None:
                late_days.setdefault(student_id, {})[other] = days
    return late_days


def download_accounts_of(connection: Connection, assignment_id: str) -> dict[str, str]:
    """Download -> the last account of what became of its files, in the order of addition."""
    query = select(DOWNLOADS.c.source, DOWNLOADS.c.record).where(rows_about(DOWNLOADS, assignment_id))
    record_by_source: dict[str, str] = {}
    for row in connection.execute(query.order_by(DOWNLOADS.c.id)):
        record_by_source.pop(
            row.source, None
        )  # so that the last account of each download stands where it was added
        record_by_source[row.source] = row.record
    return record_by_source


def add_images(connection: Connection, run_id: int, images: Mapping[str, bytes]) -> None:
    """Add a run's images by name, each content once for the whole gradebook."""
    if not images:
        return
    digests = {name: sha256(content).hexdigest() for name, content in images.items()}
    stored = set(connection.scalars(_stored_images(), {"digests": list(set(digests.values()))}))
    missing = {digests[name]: content for name, content in images.items() if digests[name] not in stored}
    if missing:
        rows = [{"digest": digest, "content": content} for digest, content in missing.items()]
        connection.execute(addition_to(IMAGES), rows)
    connection.execute(
        addition_to(RUN_IMAGES),
        [{"run_id": run_id, "name": name, "digest": digest} for name, digest in digests.items()],
    )


def add_places(connection: Connection, paths: Sequence[Path], kind: str) -> None:
    """Add the files and folders of this machine that are not listed yet."""
    host = socket.gethostname()
    known = set(connection.scalars(select(PLACES.c.path).where(PLACES.c.host == host)))
    new = dict.fromkeys(str(path.resolve()) for path in paths)
    rows = [{"host": host, "path": path, "kind": kind} for path in new if path not in known]
    if rows:
        connection.execute(addition_to(PLACES), rows)


def add_totals(connection: Connection, assignment_id: str, totals: Sequence[Total]) -> None:
    """Add the totals that differ from the last ones in points, lateness or late days."""
    if not totals:
        return
    only_student = totals[0].student_id if len(totals) == 1 else None
    last_totals = {total.student_id: total for total in totals_of(connection, assignment_id, only_student)}
    changed = [
        total
        for total in totals
        if (before := last_totals.get(total.student_id)) is None
        or not total.says_the_same_as(before)
        or (before.lateness is None and total.lateness is not None)
        or total.uses_other_late_days_than(before)
    ]
    if changed:
        connection.execute(addition_to(TOTALS), [total_values(assignment_id, total) for total in changed])


# --- statements of every result ---------------------------------------------------------------------------


# Each result that is recorded needs these: making such a statement takes longer than executing it.


@functools.cache
def addition_to(table: Table) -> Insert:
    """The statement that adds rows to a table."""
    return insert(table)


@functools.cache
def _stored_images() -> Select[Any]:
    return select(IMAGES.c.digest).where(IMAGES.c.digest.in_(bindparam("digests", expanding=True)))


@functools.cache
def _runs_of(assignment_id: str) -> Select[Any]:
    about = rows_about(RUNS, assignment_id) & (RUNS.c.student_id == bindparam("row"))
    columns = select(RUNS.c.student_id, RUNS.c.submission_digest, RUNS.c.evidence)
    return columns.where(about).order_by(RUNS.c.number)


@functools.cache
def _owner_edits(assignment_id: str) -> Select[Any]:
    about_owners = rows_about(EDITS, assignment_id) & (EDITS.c.kind == kind_of(OwnerAssigned))
    return select(EDITS).where(about_owners).order_by(EDITS.c.id)


@functools.cache
def _edits_about(assignment_id: str) -> Select[Any]:
    about = EDITS.c.student_id.is_(None) | EDITS.c.student_id.in_(bindparam("rows", expanding=True))
    return select(EDITS).where(rows_about(EDITS, assignment_id), about).order_by(EDITS.c.id)


@functools.cache
def _totals_about(assignment_id: str) -> Select[Any]:
    about = rows_about(TOTALS, assignment_id) & (TOTALS.c.student_id == bindparam("row"))
    return select(TOTALS).where(about).order_by(TOTALS.c.id)


@functools.cache
def _last_number(assignment_id: str) -> Select[Any]:
    about = rows_about(RUNS, assignment_id) & (RUNS.c.student_id == bindparam("row"))
    return select(func.max(RUNS.c.number)).where(about)


@functools.cache
def _others_with_late_days(assignment_id: str) -> CompoundSelect[Any]:
    # as two ranges of the index: `!=` would look at every total of this assignment
    before, after = TOTALS.c.assignment_id < assignment_id, TOTALS.c.assignment_id > assignment_id
    ids = select(TOTALS.c.assignment_id).where(TOTALS.c.tokens > 0)
    return union(ids.where(before), ids.where(after)).order_by(TOTALS.c.assignment_id.name)
