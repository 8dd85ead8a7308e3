"""The records about a few rows of the gradebook, read and added in one transaction.

A class of a thousand is too large to be read for one mark: this reads what the scores of a few rows depend
on, and adds decisions about them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, insert, select

from grader.domain.edit import Edit, Marked
from grader.domain.evidence import Evidence
from grader.domain.score import Total
from grader.gradebook.attempts import attempts_of
from grader.gradebook.marking_tables import TASKS
from grader.gradebook.records import edit_of, edit_values, kind_of, read_evidence
from grader.gradebook.snapshot import BookRows, Snapshot, of_row, with_student_id
from grader.gradebook.statements import (
    EDITS,
    RUNS,
    CurrentIds,
    State,
    add_totals,
    chosen_runs,
    class_salt_of,
    current_ids_of,
    edits_of,
    last_number,
    late_days_of,
    rows_about,
    state_of,
    totals_of,
    totals_since,
)


@dataclass(frozen=True)
class NumberedMark:
    """A mark about a row, with the number of its record in the whole gradebook."""

    number: int
    edit: Marked


@dataclass(frozen=True)
class AddedRecords:
    """What was added to the gradebook since some state.

    Attributes:
        run_rows: The rows of new runs.
        edits: (The record's number, the edit about a row), oldest first.
    """

    run_rows: frozenset[str]
    edits: tuple[tuple[int, Edit], ...]


class RowRecords:
    """The runs, decisions and totals of one assignment.

    Args:
        connection: To the gradebook; within a transaction.
    """

    def __init__(self, connection: Connection, assignment_id: str) -> None:
        self._connection = connection
        self._assignment_id = assignment_id

    def _numbered(self, about: ColumnElement[bool]) -> list[tuple[int, Edit]]:
        """(The record's number, the edit about a row) of some decisions, oldest first."""
        query = select(EDITS).where(about).order_by(EDITS.c.id)
        return [(found.id, edit_of(found)) for found in self._connection.execute(query)]

    def salt(self) -> str:
        """The class's salt: see `Gradebook.class_salt`."""
        return class_salt_of(self._connection)

    def last(self) -> tuple[int, int]:
        """The numbers of the last run and the last decision of the assignment; 0: there is none."""
        run, edit = self._connection.execute(
            select(
                *(
                    select(table.c.id)
                    .where(rows_about(table, self._assignment_id))
                    .order_by(table.c.id.desc())
                    .limit(1)
                    .scalar_subquery()
                    for table in (RUNS, EDITS)
                )
            )
        ).one()
        return run or 0, edit or 0

    def state(self) -> State:
        """The current state: see `Gradebook.state`."""
        return state_of(self._connection, self._assignment_id)

    def late_days(self) -> dict[str, dict[str, int]]:
        """Student -> other assignment of the gradebook -> the late days that were used there."""
        return late_days_of(self._connection, self._assignment_id)

    def added_since(self, last_run: int, last_edit: int) -> AddedRecords:
        """The runs and decisions with larger numbers than these."""
        of_runs, of_edits = (rows_about(table, self._assignment_id) for table in (RUNS, EDITS))
        new_runs = select(RUNS.c.student_id).where(of_runs, RUNS.c.id > last_run)
        new_edits = self._numbered(of_edits & (EDITS.c.id > last_edit))
        return AddedRecords(frozenset(self._connection.scalars(new_runs)), tuple(new_edits))

    def totals_since(self, last_total: int) -> dict[str, Total]:
        """Row -> the last of the totals with larger numbers than this."""
        return totals_since(self._connection, self._assignment_id, last_total)

    def ids_now(self) -> CurrentIds:
        """The ids under which the rows are listed."""
        return current_ids_of(self._connection, self._assignment_id)

    def decisions(self, kinds: Collection[type[Edit]]) -> list[tuple[int, Edit]]:
        """(The record's number, the edit about a row) of some kinds of decisions, oldest first."""
        kept = EDITS.c.kind.in_(sorted(map(kind_of, kinds)))
        return self._numbered(rows_about(EDITS, self._assignment_id) & kept)

    def marks(self, row: str, target: str) -> list[NumberedMark]:
        """All marks that were given or withdrawn about a row's item or part, oldest first."""
        about = rows_about(EDITS, self._assignment_id, row) & (EDITS.c.kind == kind_of(Marked))
        return [
            NumberedMark(number, edit)
            for number, edit in self._numbered(about)
            if isinstance(edit, Marked) and edit.target == target
        ]

    def current_marks(self, rows: Collection[str] | None = None) -> dict[tuple[str, str], NumberedMark]:
        """(Row, item or part) -> the last mark, which may withdraw an earlier one.

        Args:
            rows: Only about these; None: about all.
        """
        about = rows_about(EDITS, self._assignment_id) & (EDITS.c.kind == kind_of(Marked))
        if rows is not None:
            about &= EDITS.c.student_id.in_(rows)
        marks: dict[tuple[str, str], NumberedMark] = {}
        for number, edit in self._numbered(about):
            if isinstance(edit, Marked):
                marks[edit.student_id or "", edit.target] = NumberedMark(number, edit)
        return marks

    def valued_marks(self, target: str) -> dict[str, NumberedMark]:
        """Row -> the mark of its task that stands, of marks with comments that have points."""
        about = rows_about(TASKS, self._assignment_id) & (TASKS.c.target == target)
        about &= TASKS.c.points.is_not(None)
        about &= EDITS.c.content.contains('"valued": [[')  # as `edit_values` writes it; more is harmless
        query = select(EDITS).join(TASKS, TASKS.c.mark == EDITS.c.id).where(about).order_by(EDITS.c.id)
        marks = [(found.id, edit_of(found)) for found in self._connection.execute(query)]
        return {
            edit.student_id or "": NumberedMark(number, edit)
            for number, edit in marks
            if isinstance(edit, Marked)
        }

    def mark_numbers(self, target: str) -> list[int]:
        """The numbers of the marks of a question that stand, oldest first; a team's once."""
        about = rows_about(TASKS, self._assignment_id) & (TASKS.c.target == target)
        about &= TASKS.c.points.is_not(None) & (TASKS.c.leader == TASKS.c.student_id)
        return sorted(self._connection.scalars(select(TASKS.c.mark).where(about)))

    def marks_numbered(self, numbers: Collection[int]) -> dict[int, Marked]:
        """Number -> the mark about a row."""
        if not numbers:
            return {}
        marks = self._numbered(EDITS.c.id.in_(numbers))
        return {number: edit for number, edit in marks if isinstance(edit, Marked)}

    def first_run_of_attempt(self, row: str) -> int:
        """The number of the first run of the files that a row's latest run is about; 1 without runs."""
        query = select(RUNS.c.number, RUNS.c.submission_digest).where(
            rows_about(RUNS, self._assignment_id, row)
        )
        first = 1
        before: str | None = None
        for run in self._connection.execute(query.order_by(RUNS.c.number)):
            if run.submission_digest != before:
                first, before = run.number, run.submission_digest
        return first

    def counting(self, row: str) -> int:
        """The number of a row's run that counts: the latest, unless a decision names another; 0 without."""
        number = chosen_runs(self._connection, self._assignment_id, row).get(row)
        return last_number(self._connection, self._assignment_id, row) if number is None else number

    def have_same_files(self, row: str, one: int, other: int) -> bool:
        """Whether two of a row's runs are about the same files.

        Args:
            one, other: Their numbers.
        """
        query = select(RUNS.c.submission_digest).where(
            rows_about(RUNS, self._assignment_id, row), RUNS.c.number.in_((one, other))
        )
        return len(set(self._connection.scalars(query))) == 1

    def snapshot(self, rows: Collection[str], *, attempts: bool = False) -> Snapshot:
        """The records about these rows that count, as a snapshot of a class that has no others.

        Args:
            attempts: Read all attempts of each: see `Gradebook.snapshot`.

        Raises:
            UsageError: A record is damaged.
        """
        ids_now = self.ids_now()
        by_id = {student_id: row for row in sorted(rows) if (student_id := ids_now.id_of(row)) is not None}
        evidence: dict[str, Evidence] = {}
        runs: dict[str, int] = {}
        for row in by_id.values():
            number = self.counting(row)
            query = select(RUNS).where(rows_about(RUNS, self._assignment_id, row), RUNS.c.number == number)
            if (found := self._connection.execute(query).one_or_none()) is not None:
                evidence[row], runs[row] = read_evidence(found), found.id
        names = {*by_id.values(), *by_id}  # releases are about people, everything else about rows
        edits = edits_of(self._connection, self._assignment_id, sorted(names)) if names else ()
        totals = [
            total
            for row in by_id.values()
            for total in totals_of(self._connection, self._assignment_id, row)[-1:]
        ]
        own_attempts = {
            row: found
            for row in (by_id.values() if attempts else ())
            for found in attempts_of(self._connection, self._assignment_id, row).values()
        }
        book_rows = BookRows(
            evidence=evidence,
            edits=edits,
            totals={total.student_id: total for total in totals},
            runs=runs,
            attempts=own_attempts if attempts else None,
            late_days=late_days_of(self._connection, self._assignment_id),
        )
        return Snapshot(
            state=state_of(self._connection, self._assignment_id),
            evidence={
                student_id: with_student_id(evidence[row], student_id)
                for student_id, row in sorted(by_id.items())
                if row in evidence
            },
            edits=tuple(edit for one in edits if (edit := _with_current_id(one, by_id, ids_now)) is not None),
            totals={
                student_id: with_student_id(book_rows.totals[row], student_id)
                for student_id, row in by_id.items()
                if row in book_rows.totals
            },
            rows=book_rows,
            ids_now=ids_now,
        )

    def add(self, edits: Sequence[Edit], totals: Sequence[Total]) -> list[int]:
        """Add decisions about students, and the totals that differ from the last ones.

        Returns:
            The numbers of the decisions' records.
        """
        ids_now = self.ids_now()
        numbers = []
        for edit in edits:
            placed = of_row(edit, ids_now)
            if placed.run is None and placed.student_id is not None:
                last = last_number(self._connection, self._assignment_id, placed.student_id)
                placed = replace(placed, run=last or None)
            values = edit_values(self._assignment_id, placed)
            added = self._connection.execute(insert(EDITS).values(**values)).inserted_primary_key
            assert added is not None
            numbers.append(added[0])
        for total in totals:  # one by one, so that no others are read
            own = with_student_id(total, ids_now.row_of(total.student_id))
            add_totals(self._connection, self._assignment_id, [own])
        return numbers


def _with_current_id(edit: Edit, by_id: Collection[str], ids_now: CurrentIds) -> Edit | None:
    """An edit about a row as one about its current id; None if it is about a row that is not asked for."""
    updated = ids_now.updated(edit)
    return (
        updated
        if updated is not None and (updated.student_id is None or updated.student_id in by_id)
        else None
    )
