"""An append-only gradebook of runs, of people's decisions, and of the resulting totals."""

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Select, func, select

from grader.domain.edit import Edit, OwnerAssigned
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.run_facts import RunFacts
from grader.domain.score import Total
from grader.domain.submission import RecordedUpload
from grader.domain.submission_result import NO_HISTORY, History
from grader.gradebook.attempts import attempts_of
from grader.gradebook.database import Database
from grader.gradebook.marker_records import MarkerRecords
from grader.gradebook.marking_tables import LIGHT
from grader.gradebook.records import (
    NOTHING,
    RunRecord,
    edit_values,
    evidence_in,
    evidence_text,
    facts_text,
    read_evidence,
    run_of,
    stamp,
)
from grader.gradebook.row_records import RowRecords
from grader.gradebook.snapshot import BookRows, Snapshot, of_row, recorded_uploads, with_student_id
from grader.gradebook.statements import (
    BOOK,
    DOWNLOADS,
    EDITS,
    IMAGES,
    RUN_IMAGES,
    RUNS,
    CurrentIds,
    State,
    add_images,
    add_places,
    add_totals,
    addition_to,
    chosen_runs,
    class_salt_of,
    counting_runs,
    current_ids_of,
    download_accounts_of,
    edits_of,
    facts_of,
    last_number,
    last_numbers,
    late_days_of,
    rows_about,
    runs_of,
    state_of,
    totals_of,
    totals_since,
)
from grader.gradebook.student_records import (
    StudentRecords,
    edits_about,
    history_of,
    totals_about,
)
from grader.gradebook.task_records import TaskRecords

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class MarkingRecords:
    """The records that people who mark together need, within one transaction.

    Attributes:
        rows: Runs, decisions and totals.
        tasks: What there is to mark.
        markers: What else markers leave.
    """

    rows: RowRecords
    tasks: TaskRecords
    markers: MarkerRecords


class Gradebook:
    """The records about one assignment's submissions. Rows are added; none is ever changed or deleted.

    Args:
        folder: The results folder (`--out`): the gradebook is `gradebook.sqlite` in it. It need not exist
            before something is recorded.
        url: An SQLAlchemy URL instead, e.g. `postgresql://host/grades`.
        assignment_id: The assignment, for gradebooks that hold several; by default the only one.
    """

    def __init__(self, folder: Path, url: str | None = None, *, assignment_id: str | None = None) -> None:
        self._database = Database(folder, url or "")
        self._assignment_id = assignment_id
        self._has_records = False  # once it has some, it always will

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; the next use opens it again."""
        self._database.close()

    def require_writable(self) -> None:
        """Check that the gradebook can be written, as far as that is known beforehand.

        Raises:
            ReadOnlyBook: It may only be read.
        """
        self._database.require_writable()

    def require_local(self) -> None:
        """Check that a gradebook in a file lies on a disk of this machine.

        Raises:
            UsageError: It lies on a network file system.
        """
        self._database.require_local()

    # --- writing ----------------------------------------------------------------------------------------

    def record(
        self,
        evidence: Evidence,
        images: Mapping[str, bytes],
        *,
        who: str = "",
        total: Total | None = None,
        edits: Sequence[Edit] = (),
    ) -> int:
        """Add the evidence about a submission, completely or not at all.

        The row is that of the student: a new one if the row that began with the id is now another's.

        Args:
            evidence: The evidence.
            images: The files that belong to the evidence, by name: pictures, the view of the code, and
                the PDF that people mark.
            who: Who ran the command.
            total: The resulting total.
            edits: Decisions with it, about this run unless they name another.

        Returns:
            The run's number, 1 for the student's first.

        Raises:
            EngineError: The student's id or an image's name cannot be a file name, or a field of the
                evidence is not of its type.
            UsageError: The database rejects it.
        """
        for name in (evidence.student_id, *images):
            if not _NAME.fullmatch(name):
                raise EngineError(
                    f"'{name}' cannot be a file name in the gradebook. Report this to the grader's authors."
                )
        values = _run_values(evidence, who)
        assignment_id, student_id = evidence.assignment_id, evidence.student_id
        with self._database.writing() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            row = _row_for(evidence, ids_now)
            if row != ids_now.row_of(student_id):
                why = "The id stood on another submission before."
                relisting = OwnerAssigned(
                    who=who,
                    when=evidence.graded_at,
                    why=why,
                    student_id=row,
                    listed_as=student_id,
                    by_person=False,
                    held=False,
                )
                edits = (*edits, relisting)
            if row != student_id:
                values["evidence"] = evidence_text(with_student_id(evidence, row))  # the facts name nobody
            values["student_id"] = row
            number = 1 + last_number(connection, assignment_id, row)
            added = connection.execute(addition_to(RUNS), {"number": number, **values}).inserted_primary_key
            assert added is not None
            add_images(connection, added[0], images)
            for edit in edits:
                placed = edit if edit.run is not None else replace(edit, run=number)
                if placed.student_id == student_id:
                    placed = replace(placed, student_id=row)
                connection.execute(addition_to(EDITS), edit_values(assignment_id, placed))
            if total is not None:
                add_totals(connection, assignment_id, [with_student_id(total, row)])
        return number

    def add_download_account(self, source: str, record: str, *, who: str, when: datetime) -> None:
        """Add the account of a download, unless it equals the last account of that download.

        Args:
            source: The name of the download, of which the last account counts.
            record: The account, as text.

        Raises:
            UsageError: The database rejects it.
        """
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            if download_accounts_of(connection, assignment_id).get(source) != record:
                values = {"source": source, "who": who, "at": stamp(when), "record": record}
                connection.execute(addition_to(DOWNLOADS), {"assignment_id": assignment_id, **values})

    def note_places(self, paths: Sequence[Path], kind: str) -> None:
        """Note what the grader wrote about the class, so that it is found when a person is forgotten.

        Args:
            paths: Files or folders.
            kind: What they are: `results`, `publication`, ...

        Raises:
            UsageError: The database rejects it.
        """
        with self._database.writing() as connection:
            add_places(connection, paths, kind)

    def append(
        self,
        edits: Sequence[Edit],
        totals: Sequence[Total],
        *,
        after: State,
        absent: Sequence[Evidence] = (),
        who: str = "",
    ) -> State | None:
        """Add people's decisions and the resulting totals, together or not at all.

        Args:
            edits: In the order in which they count. Each is recorded for the student's latest run, unless it
                names another. One that says whose a submission is names a row (`RecordedUpload.row`), not a
                student.
            totals: Those that equal the last ones are left out.
            after: The state from which this was computed.
            absent: The first run of each student who handed in nothing and whom the decisions concern.
            who: Who ran the command.

        Returns:
            The new state; None if nothing was added, because something else was added since that state.

        Raises:
            UsageError: The database rejects it.
        """
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            if state_of(connection, assignment_id) != after:
                return None
            for record in absent:
                number = 1 + last_number(connection, assignment_id, record.student_id)
                added = {"student_id": record.student_id, "number": number, **_run_values(record, who)}
                connection.execute(addition_to(RUNS), added)
            ids_now = current_ids_of(connection, assignment_id)
            self._add(connection, [of_row(edit, ids_now) for edit in edits])
            # what was decided may be whose a submission is
            ids_after = current_ids_of(connection, assignment_id)
            add_totals(
                connection,
                assignment_id,
                [with_student_id(total, ids_after.row_of(total.student_id)) for total in totals],
            )
            return state_of(connection, assignment_id)

    def note(self, edits: Sequence[Edit], seen: Snapshot) -> State | None:
        """Add what happened to results, even if others were added since: it cannot be undone.

        Args:
            edits: About the students of the snapshot.
            seen: The state of the results.

        Returns:
            The new state; None if something else was added since the snapshot.

        Raises:
            UsageError: The database rejects it.
        """
        if not edits:
            return seen.state
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            is_next = state_of(connection, assignment_id) == seen.state
            self._add(connection, [of_row(edit, seen.ids_now) for edit in edits])
            return state_of(connection, assignment_id) if is_next else None

    def add_owner_edits(self, edits: Sequence[Edit]) -> None:
        """Add edits that say whose submissions are.

        Raises:
            UsageError: The database rejects it.
        """
        if edits:
            with self._database.writing() as connection:
                self._add(connection, edits)

    def _add(self, connection: Connection, edits: Sequence[Edit]) -> None:
        """Add edits about rows."""
        assignment_id = self._assignment()
        numbers = last_numbers(connection, assignment_id)
        placed = [
            edit if edit.run is not None else replace(edit, run=numbers.get(edit.student_id or ""))
            for edit in edits
        ]
        if placed:
            connection.execute(addition_to(EDITS), [edit_values(assignment_id, edit) for edit in placed])

    # --- marking ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def marking(self, *, writes: bool = False, grades: bool = False) -> Iterator[MarkingRecords]:
        """The records of people who mark together, in one transaction.

        Args:
            writes: Whether anything is changed: nobody else writes meanwhile.
            grades: Whether decisions and totals are also added.

        Raises:
            UsageError: The gradebook is empty, or cannot be used.
        """
        assignment_id = self._assignment()
        database = self._database
        tables = (*BOOK, *LIGHT) if grades else LIGHT
        with database.writing(tables) if writes else database.reading() as connection:
            yield MarkingRecords(
                RowRecords(connection, assignment_id),
                TaskRecords(connection, assignment_id),
                MarkerRecords(connection, assignment_id),
            )

    def one_reading(self) -> contextlib.AbstractContextManager[None]:
        """All that this thread reads within the block is read at one moment; nothing is written within it.

        Raises:
            UsageError: The gradebook cannot be used.
        """
        return self._database.one_reading()

    # --- reading ----------------------------------------------------------------------------------------

    def assignments(self) -> tuple[str, ...]:
        """The ids of the assignments in the gradebook, sorted."""
        if not self._database.exists():
            return ()
        with self._database.reading() as connection:
            return tuple(
                connection.scalars(select(RUNS.c.assignment_id).distinct().order_by("assignment_id"))
            )

    def download_accounts(self) -> dict[str, str]:
        """Download -> its last account, in the order of addition; older versions added none."""
        if not self._database.exists():
            return {}
        with self._database.reading() as connection:
            return download_accounts_of(connection, self._assignment())

    def snapshot(self, *, attempts: bool = False) -> Snapshot:
        """All records that count, at one moment.

        Args:
            attempts: Of students with several attempts, read them all (`Assignment.compares_attempts`).

        Raises:
            UsageError: The gradebook is empty, or a record is damaged.
        """
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            rows = connection.execute(
                select(RUNS.c.id, RUNS.c.student_id, RUNS.c.number, RUNS.c.evidence)
                .where(RUNS.c.id.in_(counting_runs(connection, assignment_id)))
                .execution_options(yield_per=20)  # the texts of a large class need not be there at once
            )
            evidence, runs = {}, {}
            for row in rows:
                evidence[row.student_id] = read_evidence(row)
                runs[row.student_id] = row.id
            return Snapshot.of(
                state_of(connection, assignment_id),
                BookRows(
                    evidence=evidence,
                    edits=edits_of(connection, assignment_id),
                    totals={total.student_id: total for total in totals_of(connection, assignment_id)},
                    runs=runs,
                    attempts=attempts_of(connection, assignment_id) if attempts else None,
                    late_days=late_days_of(connection, assignment_id),
                ),
            )

    def student_history(self, student_id: str, *, attempts: bool = False) -> History:
        """What else the student's score depends on: see `Snapshot.history`; nothing if there are no results.

        Raises:
            UsageError: A record is damaged, or the database cannot be used.
        """
        if self._is_empty():
            return NO_HISTORY
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            return history_of(connection, assignment_id, ids_now, student_id, attempts=attempts)

    def student_records(self, student_id: str, *, attempts: bool = False) -> StudentRecords:
        """What was recorded of a student, at one moment; nothing if there are no results.

        Args:
            student_id: Whose.
            attempts: See `student_history`.

        Raises:
            UsageError: A record is damaged, or the database cannot be used.
        """
        if self._is_empty():
            return StudentRecords()
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            return StudentRecords(
                edits_about(connection, assignment_id, ids_now, student_id),
                history_of(connection, assignment_id, ids_now, student_id, attempts=attempts),
                totals_about(connection, assignment_id, ids_now, student_id),
            )

    def state(self) -> State:
        """The current state: the last row of each table.

        Raises:
            UsageError: The gradebook is empty, or cannot be used.
        """
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            return state_of(connection, assignment_id)

    def identity(self) -> str:
        """A text that identifies this gradebook without revealing its salt.

        Raises:
            UsageError: The database cannot be used.
        """
        return sha256(f"book {self.class_salt()}".encode()).hexdigest()[:32]

    def class_salt(self) -> str:
        """The random text of this gradebook, from which the class's hidden splits are drawn.

        A gradebook that does not exist yet is created.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            return class_salt_of(connection)

    def students(self) -> tuple[str, ...]:
        """The ids of the students with evidence, sorted."""
        if self._is_empty():
            return ()
        with self._database.reading() as connection:
            query = select(RUNS.c.student_id).where(rows_about(RUNS, self._assignment())).distinct()
            ids_now = current_ids_of(connection, self._assignment())
            ids = (ids_now.id_of(row) for row in connection.scalars(query))
            return tuple(sorted(student_id for student_id in ids if student_id is not None))

    def runs(self, student_id: str) -> tuple[int, ...]:
        """The numbers of the student's runs, oldest first.

        Raises:
            UsageError: There is no evidence about this student.
        """
        return tuple(run.number for run in self.run_records(student_id))

    def counting(self, student_id: str) -> int:
        """The number of the student's run that counts: the latest, unless a decision names another.

        Raises:
            UsageError: There is no evidence about this student.
        """
        return self._chosen(student_id, None)

    def run_records(self, student_id: str) -> tuple[RunRecord, ...]:
        """The student's runs, oldest first.

        Raises:
            UsageError: There is no evidence about this student.
        """
        records: tuple[RunRecord, ...] = ()
        if not self._is_empty():
            columns = [column for column in RUNS.c if column.name != "evidence"]
            with self._database.reading() as connection:
                row = current_ids_of(connection, self._assignment()).row_of(student_id)
                query = select(*columns).where(rows_about(RUNS, self._assignment(), row)).order_by("number")
                records = tuple(
                    replace(run_of(record_row), student_id=student_id)
                    for record_row in connection.execute(query)
                )
        if not records:
            raise UsageError(
                f"{self._database.name} has no evidence about '{student_id}'. Grade that submission first."
            )
        return records

    def latest_facts(self) -> dict[str, RunFacts]:
        """Student -> facts about the latest run, but for damaged records; empty if the gradebook is empty."""
        if self._is_empty():
            return {}
        assignment_id = self._assignment()
        latest = (
            select(func.max(RUNS.c.id)).where(rows_about(RUNS, assignment_id)).group_by(RUNS.c.student_id)
        )
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            return {
                student_id: facts
                for row, facts in facts_of(connection, latest).items()
                if (student_id := ids_now.id_of(row)) is not None
            }

    def uploads(self) -> tuple[RecordedUpload, ...]:
        """The uploads that it has results of: see `Snapshot.uploads`."""
        if self._is_empty():
            return ()
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            facts = facts_of(connection, counting_runs(connection, assignment_id))
            return recorded_uploads(facts, current_ids_of(connection, assignment_id))

    def evidence(self, student_id: str, run: int | None = None) -> Evidence:
        """The evidence about the student's submission.

        Args:
            student_id: Whose.
            run: The run's number; by default the one that counts.

        Raises:
            UsageError: There is no such record, or it is damaged.
        """
        number = self._chosen(student_id, run)
        with self._database.reading() as connection:
            query = select(RUNS.c.student_id, RUNS.c.number, RUNS.c.evidence)
            of_student = rows_about(
                RUNS, self._assignment(), current_ids_of(connection, self._assignment()).row_of(student_id)
            )
            row = connection.execute(query.where(of_student, RUNS.c.number == number)).one()
            return with_student_id(read_evidence(row), student_id)

    def history(self, student_id: str) -> tuple[tuple[str, Evidence | None], ...]:
        """(The submission's digest, the evidence) of each of the student's runs, oldest first.

        The evidence is None if the record is damaged.
        """
        if self._is_empty():
            return ()
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            row = current_ids_of(connection, assignment_id).row_of(student_id)
            return tuple(
                (run.submission_digest, evidence_in(run)) for run in runs_of(connection, assignment_id, row)
            )

    def images(
        self, student_id: str, run: int | None = None, *, but: Collection[str] = ()
    ) -> dict[str, bytes]:
        """The images that belong to the student's evidence, by name.

        Args:
            student_id: Whose.
            run: The run's number; by default the one that counts.
            but: Names to leave out: a PDF may be large.

        Raises:
            UsageError: There is no such record.
        """
        number = self._chosen(student_id, run)
        with self._database.reading() as connection:
            of_student = rows_about(
                RUNS, self._assignment(), current_ids_of(connection, self._assignment()).row_of(student_id)
            )
            query: Select[Any] = (
                select(RUN_IMAGES.c.name, IMAGES.c.content)
                .join(RUNS, RUNS.c.id == RUN_IMAGES.c.run_id)
                .join(IMAGES, IMAGES.c.digest == RUN_IMAGES.c.digest)
                .where(of_student, RUNS.c.number == number, RUN_IMAGES.c.name.not_in(but))
                .order_by(RUN_IMAGES.c.name)
            )
            return {row.name: row.content for row in connection.execute(query)}

    def edits(self, student_id: str | None = None) -> tuple[Edit, ...]:
        """The edits about all students, or about one, and about the whole class, oldest first."""
        if self._is_empty():
            return ()
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            if student_id is not None:
                return edits_about(connection, assignment_id, ids_now, student_id)
            row_edits = edits_of(connection, assignment_id)
        return tuple(edit for row_edit in row_edits if (edit := ids_now.updated(row_edit)) is not None)

    def totals(self, student_id: str) -> tuple[Total, ...]:
        """The student's recorded totals, oldest first."""
        if self._is_empty():
            return ()
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            return totals_about(connection, assignment_id, ids_now, student_id)

    def last_totals(self) -> dict[str, Total]:
        """Student -> the last recorded total; empty if the gradebook is empty."""
        if self._is_empty():
            return {}
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            ids_now = current_ids_of(connection, assignment_id)
            return {
                student_id: with_student_id(total, student_id)
                for row, total in totals_since(connection, assignment_id, 0).items()
                if (student_id := ids_now.id_of(row)) is not None
            }

    def _is_empty(self) -> bool:
        """Whether there are no results of any assignment."""
        self._has_records = self._has_records or bool(self.assignments())
        return not self._has_records

    def _assignment(self) -> str:
        """The id of the assignment in question."""
        if self._assignment_id is None:
            assignment_ids = self.assignments()
            if len(assignment_ids) > 1:
                raise UsageError(
                    f"{self._database.name} holds several assignments: {', '.join(assignment_ids)}. "
                    "Say which with --assignment."
                )
            if not assignment_ids:
                raise UsageError(
                    f"{self._database.name} holds no results. Give the --out folder of `grader grade`, "
                    "and the same --gradebook if it had one."
                )
            self._assignment_id = assignment_ids[0]
        return self._assignment_id

    def _chosen(self, student_id: str, run: int | None) -> int:
        numbers = self.runs(student_id)
        if run is None:
            with self._database.reading() as connection:
                row = current_ids_of(connection, self._assignment()).row_of(student_id)
                return chosen_runs(connection, self._assignment(), row).get(row, numbers[-1])
        if run not in numbers:
            raise UsageError(
                f"There is no run {run} of '{student_id}'. There are {', '.join(map(str, numbers))}."
            )
        return run


def _run_values(evidence: Evidence, who: str) -> dict[str, Any]:
    """The columns of a run, except the row's id and the run's number."""
    return {
        "assignment_id": evidence.assignment_id,
        "who": who,
        "at": stamp(evidence.graded_at),
        "status": NOTHING if evidence.absent else evidence.status,
        "submission_digest": evidence.submission_digest,
        "assignment_digest": evidence.assignment_digest,
        "engine": evidence.engine,
        "data_digest": evidence.data_digest,
        "evidence": evidence_text(evidence),
        "facts": facts_text(evidence),
    }


def _row_for(evidence: Evidence, ids_now: CurrentIds) -> str:
    """The row for the evidence: the student's, or a new one if that id's row is listed under another id."""
    student_id = evidence.student_id
    if student_id in ids_now.row_by_id or student_id not in ids_now.id_by_row:
        return ids_now.row_of(student_id)
    new_row = evidence.origin.listed_as or f"{student_id}-upload"
    candidates = (new_row, *(f"{new_row}-{number}" for number in range(2, len(ids_now.id_by_row) + 3)))
    return next(row for row in candidates if row not in ids_now.id_by_row)
