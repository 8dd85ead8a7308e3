"""Removes persons from every table of the gradebook: the one exception to the rule that it only grows.

It knows no table by name, except where a row is about a run or an image. In each table that the database
has, rows about the persons go: by `student_id`, and by foreign keys on rows that go. In all other rows,
every text loses its mentions of them. So a table that is added later is covered. A row of somebody else
that began under the id of such a person gets another key. Tests: `tests/gradebook/test_forgotten_rows.py`.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    MetaData,
    Table,
    and_,
    delete,
    insert,
    select,
    update,
)

from grader.domain.mentions import Mentions
from grader.files.forgotten_text import compressed_without, json_without
from grader.files.stored_records import VIEW_FILE
from grader.gradebook.database import Database
from grader.gradebook.marking_tables import BASIS
from grader.gradebook.person_rows import KnownPersons, is_of_person, known_persons
from grader.gradebook.records import stamp
from grader.gradebook.statements import FORGETTINGS, IMAGES, PLACES, RUN_IMAGES, RUNS

SUBJECT, ASSIGNMENT = "student_id", "assignment_id"
STAFF_COLUMNS = ("who", "marker")  # of any table: who worked on the class
MOVED = "moved"  # the beginning of the new key of a row that began under a forgotten id
UNTOUCHED = ("alembic_version", IMAGES.name, FORGETTINGS.name)  # the version; contents by digest; counts


@dataclass(frozen=True)
class WrittenPlace:
    """A file or folder that the grader wrote about a class.

    Attributes:
        host: The machine.
        kind: `results`, `publication`, `export`, `marking sheet`, `personal data`.
    """

    host: str
    path: Path
    kind: str


class PersonalRecords:
    """What a gradebook holds about persons, in all of its assignments.

    Args:
        folder, url: As of a `Gradebook`.
    """

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self._database = Database(folder, url or "")

    @property
    def name(self) -> str:
        """The gradebook in messages."""
        return self._database.name

    def exists(self) -> bool:
        """Whether there is a gradebook."""
        return self._database.exists()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def persons(self) -> KnownPersons:
        """Everybody whom it mentions.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            return known_persons(connection)

    def places(self) -> tuple[WrittenPlace, ...]:
        """The files and folders that the grader wrote.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            rows = connection.execute(select(PLACES).order_by(PLACES.c.id)).all()
        return tuple(WrittenPlace(row.host, Path(row.path), row.kind) for row in rows)

    def rows_of(self, ids: frozenset[str]) -> dict[str, list[dict[str, Any]]]:
        """Table -> the rows about these persons, as recorded; images by the names that runs give them.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            planned = _Planned(connection, ids, known_persons(connection).mentions(ids))
            return {
                table.name: [dict(row._mapping) for row in found.gone]
                for table, found in planned.changes.items()
                if found.gone
            }

    def files_of(self, ids: frozenset[str]) -> Iterator[tuple[str, str, int, str, bytes]]:
        """(assignment, row, number of the run, name, content) of each file that belongs to their runs.

        Raises:
            UsageError: The database cannot be used.
        """
        query = (
            select(
                RUNS.c.assignment_id, RUNS.c.student_id, RUNS.c.number, RUN_IMAGES.c.name, IMAGES.c.content
            )
            .join(RUNS, RUNS.c.id == RUN_IMAGES.c.run_id)
            .join(IMAGES, IMAGES.c.digest == RUN_IMAGES.c.digest)
            .order_by(RUNS.c.id, RUN_IMAGES.c.name)
        )
        with self._database.reading() as connection:
            people = known_persons(connection).by_id
            rows = {row for one in ids if one in people for row in people[one].rows}
            for row in connection.execute(query.execution_options(yield_per=20)):
                if (row.assignment_id, row.student_id) in rows:
                    yield row.assignment_id, row.student_id, row.number, row.name, row.content

    def staff(self) -> frozenset[str]:
        """The names under which people worked on the class.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            return frozenset(
                name
                for table in _tables(connection).sorted_tables
                for column in STAFF_COLUMNS
                if column in table.c
                for name in connection.scalars(select(table.c[column]).distinct())
                if name
            )

    def counts(self, ids: frozenset[str], mentions: Mentions) -> dict[str, int]:
        """Table -> how many rows would be removed or changed.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            return _Planned(connection, ids, mentions).counts

    def forget(
        self, ids: frozenset[str], mentions: Mentions, *, who: str, when: datetime, files: int
    ) -> dict[str, int]:
        """Remove these persons, and note how many they were; afterwards the database must be compacted.

        Args:
            files: How many files were removed or changed, for the record.

        Returns:
            Table -> how many rows were removed or changed.

        Raises:
            UsageError: The database cannot be used; nothing was changed then.
        """
        with self._database.forgetting() as connection:
            planned = _Planned(connection, ids, mentions)
            planned.apply()
            # a database may give the ids of removed rows again: the tasks begin anew
            connection.execute(delete(BASIS))
            record = {"at": stamp(when), "who": mentions.replaced(who), "persons": len(ids), "files": files}
            connection.execute(insert(FORGETTINGS).values(rows=json.dumps(planned.counts), **record))
        return planned.counts

    def compact(self) -> None:
        """Leave no trace of removed rows in the files of the database.

        Raises:
            UsageError: It cannot be done now.
        """
        self._database.compact()

    def left(self, mentions: Mentions) -> tuple[str, ...]:
        """`table.column` where a text or binary value still mentions the persons."""
        found = set()
        with self._database.reading() as connection:
            for table in _tables(connection).sorted_tables:
                for row in connection.execute(select(table)):
                    for name, value in row._mapping.items():
                        if _mentions(value, mentions):
                            found.add(f"{table.name}.{name}")
        return tuple(sorted(found))


@dataclass
class _Changes:
    """What forgetting does to the rows of a table.

    Attributes:
        gone: Rows that are removed.
        new: (a row, the columns that change).
    """

    gone: list[Any] = field(default_factory=list)
    new: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)


class _Planned:
    """What forgetting does to the database; nothing is changed by finding it out."""

    def __init__(self, connection: Connection, ids: frozenset[str], mentions: Mentions) -> None:
        self._connection, self._ids, self._mentions = connection, ids, mentions
        people = known_persons(connection)
        self._rows = {row for one in ids if one in people.by_id for row in people.by_id[one].rows}
        everybodys = {row for person in people.by_id.values() for row in person.rows}
        self.renamed = _new_keys(everybodys, self._rows, ids)
        self.changes: dict[Table, _Changes] = {}
        for table in _tables(connection).sorted_tables:  # what others refer to comes first
            if table.name not in UNTOUCHED:
                self.changes[table] = self._of_table(table)
        self.views = dict(self._views())

    @property
    def counts(self) -> dict[str, int]:
        """Table -> how many rows are removed or changed."""
        counts = {table.name: len(found.gone) + len(found.new) for table, found in self.changes.items()}
        counts[RUN_IMAGES.name] += len(self.views)
        return {name: count for name, count in sorted(counts.items()) if count}

    def _of_table(self, table: Table) -> _Changes:
        found = _Changes()
        columns = [column for column in table.c if not isinstance(column.type, LargeBinary)]
        for row in self._connection.execute(select(*columns)):
            if self._goes(table, row):
                found.gone.append(row)
            elif new := self._cleaned(table, row):
                found.new.append((row, new))
        return found

    def _goes(self, table: Table, row: Any) -> bool:
        if SUBJECT in table.c and is_of_person(table, row, self._rows, self.renamed, self._ids):
            return True
        for key in table.foreign_keys:
            parents = self.changes.get(key.column.table)
            if parents is not None and parents.gone:
                value = row._mapping[key.parent.name]
                if any(parent._mapping[key.column.name] == value for parent in parents.gone):
                    return True
        return False

    def _cleaned(self, table: Table, row: Any) -> dict[str, Any]:
        """The columns of a row that change, with their new values; what refers to other rows says nothing."""
        new = {}
        values = dict(row._mapping)
        key = self.renamed.get((str(values.get(ASSIGNMENT)), str(values.get(SUBJECT))))
        for name, value in values.items():
            if name == SUBJECT and key is not None:
                new[name] = key
            elif isinstance(value, str) and not table.c[name].foreign_keys:
                text = (
                    _evidence_under(value, key) if key is not None and name == RUNS.c.evidence.name else value
                )
                cleaned = text_without(text, self._mentions)
                if cleaned != value:
                    new[name] = cleaned
        return new

    def _views(self) -> Iterator[tuple[tuple[int, str], bytes]]:
        """(run, name) -> the view of somebody else's work without what it says about the persons."""
        gone = {
            row.id for table, found in self.changes.items() if table.name == RUNS.name for row in found.gone
        }
        query = (
            select(RUN_IMAGES.c.run_id, RUN_IMAGES.c.name, IMAGES.c.content)
            .join(IMAGES, IMAGES.c.digest == RUN_IMAGES.c.digest)
            .where(RUN_IMAGES.c.name == VIEW_FILE)
        )
        for row in self._connection.execute(query.execution_options(yield_per=20)):
            if row.run_id not in gone:
                with contextlib.suppress(ValueError):  # of another version: it shows nothing
                    content = compressed_without(row.content, self._mentions)
                    if content != row.content:
                        yield (row.run_id, row.name), content

    def apply(self) -> None:
        """Change the database."""
        for table, found in reversed(self.changes.items()):
            for row in found.gone:
                self._connection.execute(delete(table).where(_is_row(table, row)))
            for row, new in found.new:
                self._connection.execute(update(table).where(_is_row(table, row)).values(new))
        for (run_id, name), content in self.views.items():
            digest = sha256(content).hexdigest()
            known = self._connection.scalar(select(IMAGES.c.digest).where(IMAGES.c.digest == digest))
            if known is None:
                self._connection.execute(insert(IMAGES).values(digest=digest, content=content))
            row_of_view = (RUN_IMAGES.c.run_id == run_id) & (RUN_IMAGES.c.name == name)
            self._connection.execute(update(RUN_IMAGES).where(row_of_view).values(digest=digest))
        in_use = select(RUN_IMAGES.c.digest)  # others may have the same image
        self._connection.execute(delete(IMAGES).where(IMAGES.c.digest.not_in(in_use)))


def text_without(text: str, mentions: Mentions) -> str:
    """The text of a column, which may be a JSON document, without mentions of the persons."""
    if text.startswith(("{", "[")) and ("\\u" in text or mentions.are_in(text)):
        with contextlib.suppress(ValueError):
            return json_without(text, mentions)
    return mentions.replaced(text)


def _evidence_under(text: str, key: str) -> str:
    """The text of evidence under another key of its row; a damaged record stays as it is."""
    try:
        document = json.loads(text)
        document["evidence"]["student_id"] = key
    except (ValueError, KeyError, TypeError):
        return text
    return json.dumps(document, indent=1)


def _new_keys(
    everybodys: set[tuple[str, str]], theirs: set[tuple[str, str]], ids: frozenset[str]
) -> dict[tuple[str, str], str]:
    """(assignment, row) of others' work that began under an id of the persons -> a key that nobody has."""
    taken = {row for _, row in everybodys}
    free = (f"{MOVED}-{number}" for number in range(1, len(taken) + len(everybodys) + 2))
    keys = (key for key in free if key not in taken)
    return {place: next(keys) for place in sorted(everybodys - theirs) if place[1] in ids}


def _is_row(table: Table, row: Any) -> ColumnElement[bool]:
    """The condition by which a row is found again: its key, or all of it in a table without one."""
    columns = list(table.primary_key.columns) or [table.c[name] for name in row._mapping]
    return and_(*(column == row._mapping[column.name] for column in columns))


def _mentions(value: Any, mentions: Mentions) -> bool:
    if isinstance(value, str):
        return mentions.are_in(value)
    if not isinstance(value, bytes):
        return False
    with contextlib.suppress(ValueError):
        return compressed_without(value, mentions) != value
    return mentions.are_in_bytes(value)


def _tables(connection: Connection) -> MetaData:
    """All tables that the database has, whoever added them."""
    metadata = MetaData()
    metadata.reflect(connection)
    return metadata
