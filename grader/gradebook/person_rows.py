"""Finds what the gradebook holds about each person: rows, ids, names, and when something was last added.

A submission keeps its row when it turns out to be somebody else's; so a person's rows are those that are
listed under the person's id now, and releases are the person's whatever turned out since. It reads all
assignments of the gradebook, and changes nothing. Tests: `tests/gradebook/test_forgotten_rows.py`.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, select

from grader.domain.edit import Released
from grader.domain.mentions import Mentions
from grader.gradebook.records import evidence_from, kind_of
from grader.gradebook.statements import DOWNLOADS, EDITS, RUNS, TOTALS, current_ids, edits_of

LONGEST_NUMBER = 6  # digits from which on an LMS's number of a person is nobody else's
RELEASES = (kind_of(Released), "released")  # the kinds of releases in `decisions`, and in the older `edits`


@dataclass
class BookPerson:
    """A person in the gradebook.

    Attributes:
        student_id: The id under which the person's work is listed now.
        rows: (assignment, row) of all that is the person's.
        aliases: What else identifies the person: ids of rows, the LMS's number, keys and names of uploads.
        keys: Of the person's uploads; that of a mate's upload is the sender's and the mate's id, with `:`.
        names: What LMSs call the person.
        last: When something about the person was last added, ISO 8601 in UTC; empty if nothing tells.
    """

    student_id: str
    rows: set[tuple[str, str]] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    last: str = ""

    def came(self, at: str) -> None:
        """Note that something about the person was added."""
        self.last = max(self.last, at)


@dataclass(frozen=True)
class KnownPersons:
    """Everybody whom the gradebook mentions.

    Attributes:
        by_id: Id -> the person.
        carried: Id -> the ids of submissions that carry it in their files, and that nobody knows an owner of.
    """

    by_id: Mapping[str, BookPerson]
    carried: Mapping[str, tuple[str, ...]]

    def mentions(self, ids: frozenset[str]) -> Mentions:
        """By what these persons are mentioned; ids of others among it are left out."""
        others = frozenset(self.by_id.keys() - ids)
        chosen = [self.by_id[one] for one in ids if one in self.by_id]
        aliases = frozenset().union(ids, *map(self._own_aliases, chosen)) - others
        names = frozenset().union(*(person.names for person in chosen))
        # a name that others have as well identifies nobody
        others_names = frozenset().union(*(self.by_id[one].names for one in others))
        return Mentions(aliases, names - others_names, others)

    def _own_aliases(self, person: BookPerson) -> set[str]:
        """What identifies a person, without what identifies a mate whose upload is the person's, too."""
        senders_keys = {key.rpartition(":")[0] for key in person.keys}
        senders = [one for one in self.by_id.values() if one is not person and one.keys & senders_keys]
        return person.aliases.difference(*(sender.aliases for sender in senders))


def known_persons(connection: Connection) -> KnownPersons:
    """Everybody whom the gradebook mentions, in all of its assignments."""
    people: dict[str, BookPerson] = {}
    carried: dict[str, set[str]] = defaultdict(set)

    def person(student_id: str) -> BookPerson:
        return people.setdefault(student_id, BookPerson(student_id))

    for assignment_id in _assignments(connection):
        runs = connection.execute(
            select(RUNS.c.student_id, RUNS.c.at, RUNS.c.evidence).where(RUNS.c.assignment_id == assignment_id)
        ).all()
        ids_now = current_ids({run.student_id for run in runs}, edits_of(connection, assignment_id))
        for run in runs:
            listed_as = ids_now.id_by_row.get(run.student_id, run.student_id)
            owner = person(listed_as)
            owner.rows.add((assignment_id, run.student_id))
            owner.aliases.add(run.student_id)
            owner.came(run.at)
            held = run.student_id in ids_now.owner_edits and ids_now.owner_edits[run.student_id].held
            _note_origin(owner, run.evidence, carried if held else None)
        for table in (EDITS, TOTALS):
            for row in connection.execute(select(table).where(table.c.assignment_id == assignment_id)):
                if row.student_id is not None:
                    is_release = table is EDITS and row.kind in RELEASES
                    listed_as = ids_now.id_by_row.get(row.student_id, row.student_id)
                    person(row.student_id if is_release else listed_as).came(row.at)
    for row in connection.execute(select(DOWNLOADS.c.at, DOWNLOADS.c.record)):
        for student_id in _in_account(row.record):
            person(student_id).came(row.at)
    return KnownPersons(people, {student_id: tuple(sorted(ids)) for student_id, ids in carried.items()})


def is_of_person(
    table: Table,
    row: Any,
    rows: set[tuple[str, str]],
    foreign: Collection[tuple[str, str]],
    ids: frozenset[str],
) -> bool:
    """Whether a row of a table with a column `student_id` is about some persons.

    Args:
        rows: (assignment, row) of what is theirs.
        foreign: The same of what is others', although it began under an id of theirs.
        ids: Under which their work is listed.
    """
    if "assignment_id" not in table.c or ("kind" in table.c and row.kind in RELEASES):
        return row.student_id in ids
    place = row.assignment_id, row.student_id
    return place in rows or (row.student_id in ids and place not in foreign)


def _assignments(connection: Connection) -> list[str]:
    found: set[str] = set()
    for table in (RUNS, EDITS, TOTALS):
        found |= set(connection.scalars(select(table.c.assignment_id).distinct()))
    return sorted(found)


def _note_origin(owner: BookPerson, text: str, carried: Mapping[str, set[str]] | None) -> None:
    """Note what the evidence says about who handed it in; a damaged record says nothing."""
    try:
        origin = evidence_from(text).origin
    except (ValueError, RecursionError):
        return
    owner.keys |= {key for key in (origin.key,) if key}
    owner.aliases |= {known for known in (origin.key, origin.upload, origin.listed_as) if known}
    if len(origin.number) >= LONGEST_NUMBER:
        owner.aliases.add(origin.number)
    if origin.person:
        owner.names.add(origin.person)
    if carried is not None and origin.carries:
        carried[origin.carries].add(owner.student_id)


def _in_account(text: str) -> Iterator[str]:
    """The ids of persons in the account of a download."""
    download = json.loads(text).get("download") or {}
    roster = download.get("roster") or {}
    for record in (*download.get("files", ()), *download.get("lacking", ())):
        if record.get("student_id"):
            yield record["student_id"]
    for key in ("students", "submitted", "missing", "unlisted"):
        yield from roster.get(key, ())
