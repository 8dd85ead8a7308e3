"""The tables of a gradebook, the statements about its rows, and the ids they are listed under.

Rows are read and added: there is no UPDATE and no DELETE. `migrations` makes the tables. A row keeps the
id that its submission had when it was first recorded. Where the submission turns out to be somebody
else's, or nobody's for now, edits say so, and reading translates. Of several submissions that are one
student's, that which a person named last counts. It never opens a database (`database` does), and it
never decides whose a submission is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SelectBase,
    Table,
    Text,
    func,
    insert,
    select,
    tuple_,
    union,
)

from grader.domain.edit import Edit, Listed, Released, RunChosen, standing_owner
from grader.domain.score import Total
from grader.gradebook.records import edit_of, kind_of, total_of, total_values

METADATA = MetaData()

# One row per examination of a submission. `evidence` is the record itself, the text of evidence_file.py; the
# other columns repeat what is asked for without reading it.
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
)

# Images are in the book, so that a run and its images are there together or not at all, also on PostgreSQL;
# by content, because students share the hidden test images of the predictions.
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

# One row per edit (grader.domain.edit). `kind` says which class of edits it is, and `content` holds as JSON
# the fields that are that class's own. `student_id` is null for the whole class. Books that are older have a
# table `edits` as well, from which these were converted: it is kept as it was, and nothing reads it.
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

# One row, as old as the table: a random text that makes what is drawn for this class its own.
CLASS_SALT = Table(
    "class_salt",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("salt", Text, nullable=False),
)

# One row per change of a student's total (grader.domain.score).
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

# One row per download that was graded: the account of its files, as JSON. Of each source, the last counts.
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


# --- listing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listing:
    """Rows and the ids that they are listed under.

    Attributes:
        shown: Row -> id.
        current: Id -> the row that counts for it.
        said: Row -> the edit that says so; rows of which nothing was said keep their own id.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, Listed] = field(default_factory=dict)

    def row(self, student_id: str) -> str:
        """The row that counts for an id; of an id that is not listed, the row that began with it."""
        return self.current.get(student_id, student_id)

    def listed(self, row: str) -> str | None:
        """The id that a row is listed under; None where another row counts for that id."""
        student_id = self.shown.get(row, row)
        return student_id if self.current.get(student_id, row) == row else None

    def of(self, edit: Edit) -> Edit | None:
        """An edit about a row as one about the id that it is listed under; None where that is not listed.

        A release is about the person who was told, whatever turned out about the submission since.
        """
        if isinstance(edit, Released):
            return edit
        student_id = self.listed(edit.student_id) if edit.student_id is not None else None
        if edit.student_id is None or student_id == edit.student_id:
            return edit
        return None if student_id is None else replace(edit, student_id=student_id)


def listing(rows: Iterable[str], edits: Sequence[Edit]) -> Listing:
    """Under which ids rows are listed.

    Args:
        rows: All that the book keeps of an assignment.
        edits: Those about rows, oldest first, of any kind.
    """
    own: dict[str, list[tuple[int, Listed]]] = {row: [] for row in rows}
    for place, edit in enumerate(edits):
        if isinstance(edit, Listed) and edit.student_id in own:
            own[edit.student_id].append((place, edit))
    shown, said, ranks = {}, {}, {}
    for row, told in own.items():
        last = standing_owner(edit for _, edit in told)
        shown[row] = row if last is None else last.listed_as
        ranks[row] = (False, -1)
        if last is not None:
            said[row] = last
            ranks[row] = (last.by_person, max(place for place, edit in told if edit is last))
    current: dict[str, str] = {}
    for row, student_id in sorted(shown.items()):
        other = current.get(student_id)
        if other is None or ranks[other] < ranks[row]:
            current[student_id] = row
    return Listing(shown, current, said)


# --- statements ------------------------------------------------------------------------------------------


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


def late_days_of(connection: Connection, assignment_id: str) -> dict[str, dict[str, int]]:
    """Student -> other assignment of the book -> the late days that were used there, by the last total."""
    others = connection.scalars(
        select(TOTALS.c.assignment_id)
        .where(TOTALS.c.assignment_id != assignment_id, TOTALS.c.tokens > 0)
        .distinct()
        .order_by(TOTALS.c.assignment_id)
    ).all()
    late_days: dict[str, dict[str, int]] = {}
    for other in others:
        listed = listing_of(connection, other)
        last = {total.student_id: total.tokens for total in totals_of(connection, other)}
        for row, tokens in last.items():
            student_id = listed.listed(row)
            if tokens and student_id is not None:
                late_days.setdefault(student_id, {})[other] = tokens
    return late_days


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
    """Add the totals that differ from the last ones, or tell of lateness or late days where those do not."""
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
        or total.uses_other_tokens_than(before)
    ]
    if new:
        connection.execute(insert(TOTALS), [total_values(assignment_id, total) for total in new])
