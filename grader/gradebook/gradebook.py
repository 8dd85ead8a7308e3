"""An append-only book of runs, of what people decided, and of the totals that came of both."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Select, insert, select

from grader.domain.edit import Edit, Listed, Released
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import Total
from grader.domain.student_history import History
from grader.gradebook.attempts import attempts_of
from grader.gradebook.database import Database
from grader.gradebook.records import (
    NOTHING,
    RunRecord,
    edit_values,
    evidence_from,
    evidence_text,
    run_of,
    stamp,
)
from grader.gradebook.snapshot import BookRows, Snapshot, listed_as, of_row
from grader.gradebook.statements import (
    CLASS_SALT,
    DOWNLOADS,
    EDITS,
    IMAGES,
    RUN_IMAGES,
    RUNS,
    Listing,
    State,
    accounts_of,
    add_images,
    add_totals,
    chosen_runs,
    counting_runs,
    edits_of,
    last_number,
    last_numbers,
    late_days_of,
    listing_of,
    of,
    state_of,
    totals_of,
)

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class Gradebook:
    """What is known about one assignment's submissions. Rows are added; none is ever changed or deleted.

    Args:
        folder: The results folder (`--out`): the book is `gradebook.sqlite` in it. It need not exist before
            something is recorded.
        url: An SQLAlchemy URL instead, e.g. `postgresql://host/grades`.
        assignment_id: The assignment, for books that hold several; by default the only one.
    """

    def __init__(self, folder: Path, url: str | None = None, *, assignment_id: str | None = None) -> None:
        self._database = Database(folder, url or "")
        self._assignment_id = assignment_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        self._database.close()

    def require_writable(self) -> None:
        """Raises where it is known that nothing can be kept in the book.

        Raises:
            ReadOnlyBook: It may only be read.
        """
        self._database.require_writable()

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
        """Add what was found out about one submission, whole or not at all.

        The row is that of the student: a new one where the row that began with the id is another's by now.

        Args:
            evidence: What was found out.
            images: The files that belong to the evidence, by name: pictures, the view of the code, and
                the PDF that people mark.
            who: Who ran the command.
            total: The total that came of it.
            edits: What is decided with it, about this run unless they say which.

        Returns:
            The run's number, 1 for the student's first.

        Raises:
            EngineError: The student's id or an image's name cannot be a file name, or a field of the
                evidence is not of its type.
            UsageError: The database does not take it.
        """
        for name in (evidence.student_id, *images):
            if not _NAME.fullmatch(name):
                raise EngineError(
                    f"'{name}' cannot be a file name in the gradebook. Report this to the grader's authors."
                )
        values = _run_values(evidence, who)
        assignment_id, student_id = evidence.assignment_id, evidence.student_id
        with self._database.writing() as connection:
            listed = listing_of(connection, assignment_id)
            row = _row_for(evidence, listed)
            if row != listed.row(student_id):
                why = "The id stood on another submission before."
                found = Listed(
                    who=who,
                    when=evidence.graded_at,
                    why=why,
                    student_id=row,
                    listed_as=student_id,
                    by_person=False,
                    held=False,
                )
                edits = (*edits, found)
            if row != student_id:
                values["evidence"] = evidence_text(listed_as(evidence, row))
            values["student_id"] = row
            number = 1 + last_number(connection, assignment_id, row)
            added = connection.execute(insert(RUNS).values(number=number, **values)).inserted_primary_key
            assert added is not None
            add_images(connection, added[0], images)
            for edit in edits:
                placed = edit if edit.run is not None else replace(edit, run=number)
                if placed.student_id == student_id:
                    placed = replace(placed, student_id=row)
                connection.execute(insert(EDITS), edit_values(assignment_id, placed))
            if total is not None:
                add_totals(connection, assignment_id, [listed_as(total, row)])
        return number

    def add_account(self, source: str, record: str, *, who: str, when: datetime) -> None:
        """Add the account of a download, unless it says what the last one of that download says.

        Args:
            source: What the download is called: its last account counts.
            record: The account, as text.

        Raises:
            UsageError: The database does not take it.
        """
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            if accounts_of(connection, assignment_id).get(source) != record:
                values = {"source": source, "who": who, "at": stamp(when), "record": record}
                connection.execute(insert(DOWNLOADS), {"assignment_id": assignment_id, **values})

    def append(
        self,
        edits: Sequence[Edit],
        totals: Sequence[Total],
        *,
        after: State,
        absent: Sequence[Evidence] = (),
        who: str = "",
    ) -> State | None:
        """Add what people decided and the totals that come of it, together or not at all.

        Args:
            edits: In the order in which they are to count. Each is noted to be about the student's latest
                run, unless it says which. Those on whose a submission is are about rows (`KnownUpload.row`).
            totals: Those that say the same as the last ones are left out.
            after: The state that this was worked out from.
            absent: The first run of each student who handed in nothing, about which they decided too.
            who: Who ran the command.

        Returns:
            The state from then on; None where nothing was added, because something else was since that state.

        Raises:
            UsageError: The database does not take it.
        """
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            if state_of(connection, assignment_id) != after:
                return None
            for one in absent:
                number = 1 + last_number(connection, assignment_id, one.student_id)
                added = {"student_id": one.student_id, "number": number, **_run_values(one, who)}
                connection.execute(insert(RUNS), added)
            listed = listing_of(connection, assignment_id)
            self._add(connection, [of_row(edit, listed) for edit in edits])
            # what was decided may be whose a submission is
            now = listing_of(connection, assignment_id)
            add_totals(connection, assignment_id, [listed_as(one, now.row(one.student_id)) for one in totals])
            return state_of(connection, assignment_id)

    def note(self, edits: Sequence[Edit], seen: Snapshot) -> State | None:
        """Add what happened to results, whatever was added since they were seen: it cannot be undone.

        Args:
            edits: About the students of the snapshot.
            seen: The state that the results were of.

        Returns:
            The state from then on; None where something else was added since they were seen.

        Raises:
            UsageError: The database does not take it.
        """
        if not edits:
            return seen.state
        assignment_id = self._assignment()
        with self._database.writing() as connection:
            is_next = state_of(connection, assignment_id) == seen.state
            self._add(connection, [of_row(edit, seen.listing) for edit in edits])
            return state_of(connection, assignment_id) if is_next else None

    def relist(self, edits: Sequence[Edit]) -> None:
        """Add what was found out about whose submissions are.

        Raises:
            UsageError: The database does not take it.
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
            connection.execute(insert(EDITS), [edit_values(assignment_id, edit) for edit in placed])

    # --- reading ----------------------------------------------------------------------------------------

    def assignments(self) -> tuple[str, ...]:
        """The ids of the assignments that the book knows, sorted."""
        if not self._database.exists():
            return ()
        with self._database.reading() as connection:
            return tuple(
                connection.scalars(select(RUNS.c.assignment_id).distinct().order_by("assignment_id"))
            )

    def accounts(self) -> dict[str, str]:
        """Download -> its last account, in the order in which these were added; of older versions none."""
        if not self._database.exists():
            return {}
        with self._database.reading() as connection:
            return accounts_of(connection, self._assignment())

    def snapshot(self, *, attempts: bool = False) -> Snapshot:
        """All that counts, as it was at one moment.

        Args:
            attempts: Of students with several attempts, read them all (`Assignment.compares_attempts`).

        Raises:
            UsageError: The book is empty, or a record is damaged.
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
                evidence[row.student_id] = self._parsed(row)
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
        """What else the student's score depends on: see `Snapshot.history`.

        Raises:
            UsageError: A record is damaged, or the database cannot be used.
        """
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            row = listing_of(connection, assignment_id).row(student_id)
            own = attempts_of(connection, assignment_id, row, least=1).get(row, ()) if attempts else ()
            late_days = late_days_of(connection, assignment_id).get(student_id, {})
        return History(
            tuple(replace(attempt, evidence=listed_as(attempt.evidence, student_id)) for attempt in own),
            tuple(sorted(late_days.items())),
        )

    def state(self) -> State:
        """How far the book is.

        Raises:
            UsageError: The book is empty, or cannot be used.
        """
        assignment_id = self._assignment()
        with self._database.reading() as connection:
            return state_of(connection, assignment_id)

    def identity(self) -> str:
        """What tells this book from others, and tells nothing of its salt.

        Raises:
            UsageError: The database cannot be used.
        """
        return sha256(f"book {self.class_salt()}".encode()).hexdigest()[:32]

    def class_salt(self) -> str:
        """The random text that the book was made with: what is drawn for this class depends on it.

        A book that does not exist yet is made.

        Raises:
            UsageError: The database cannot be used.
        """
        with self._database.reading() as connection:
            salt: str = connection.execute(select(CLASS_SALT.c.salt).order_by("id").limit(1)).scalar_one()
            return salt

    def students(self) -> tuple[str, ...]:
        """The ids of the students with evidence, sorted."""
        if not self.assignments():
            return ()
        with self._database.reading() as connection:
            found = select(RUNS.c.student_id).where(of(RUNS, self._assignment())).distinct()
            listed = listing_of(connection, self._assignment())
            ids = (listed.listed(row) for row in connection.scalars(found))
            return tuple(sorted(one for one in ids if one is not None))

    def runs(self, student_id: str) -> tuple[int, ...]:
        """The numbers of the student's runs, oldest first.

        Raises:
            UsageError: There is no evidence about this student.
        """
        return tuple(run.number for run in self.run_records(student_id))

    def counting(self, student_id: str) -> int:
        """The number of the student's run that counts: the latest, unless it was decided otherwise.

        Raises:
            UsageError: There is no evidence about this student.
        """
        return self._chosen(student_id, None)

    def run_records(self, student_id: str) -> tuple[RunRecord, ...]:
        """The student's runs, oldest first.

        Raises:
            UsageError: There is no evidence about this student.
        """
        found: tuple[RunRecord, ...] = ()
        if self.assignments():
            columns = [column for column in RUNS.c if column.name != "evidence"]
            with self._database.reading() as connection:
                row = listing_of(connection, self._assignment()).row(student_id)
                wanted = select(*columns).where(of(RUNS, self._assignment(), row)).order_by("number")
                found = tuple(
                    replace(run_of(one), student_id=student_id) for one in connection.execute(wanted)
                )
        if not found:
            raise UsageError(
                f"{self._database.name} has no evidence about '{student_id}'. Grade that submission first."
            )
        return found

    def latest_runs(self) -> dict[str, RunRecord]:
        """Student -> the latest run; empty when the book is."""
        if not self.assignments():
            return {}
        columns = [column for column in RUNS.c if column.name != "evidence"]
        with self._database.reading() as connection:
            wanted = select(*columns).where(of(RUNS, self._assignment())).order_by("number")
            listed = listing_of(connection, self._assignment())
            return {
                student_id: replace(run_of(row), student_id=student_id)
                for row in connection.execute(wanted)
                if (student_id := listed.listed(row.student_id)) is not None
            }

    def evidence(self, student_id: str, run: int | None = None) -> Evidence:
        """What was found out about the student's submission.

        Args:
            student_id: Whose.
            run: The run's number; by default the one that counts.

        Raises:
            UsageError: There is no such record, or it is damaged.
        """
        number = self._chosen(student_id, run)
        with self._database.reading() as connection:
            wanted = select(RUNS.c.student_id, RUNS.c.number, RUNS.c.evidence)
            own = of(RUNS, self._assignment(), listing_of(connection, self._assignment()).row(student_id))
            row = connection.execute(wanted.where(own, RUNS.c.number == number)).one()
            return listed_as(self._parsed(row), student_id)

    def history(self, student_id: str) -> tuple[tuple[str, Evidence | None], ...]:
        """(the submission's digest, what was found out) of each of the student's runs, oldest first.

        What was found out is None where the record is damaged.
        """
        if not self.assignments():
            return ()
        wanted = select(RUNS.c.student_id, RUNS.c.submission_digest, RUNS.c.evidence)
        with self._database.reading() as connection:
            about = of(RUNS, self._assignment(), listing_of(connection, self._assignment()).row(student_id))
            rows = connection.execute(wanted.where(about).order_by("number"))
            return tuple((row.submission_digest, _evidence_in(row)) for row in rows)

    def images(
        self, student_id: str, run: int | None = None, *, but: Collection[str] = ()
    ) -> dict[str, bytes]:
        """The images that belong to the student's evidence, by name.

        Args:
            student_id: Whose.
            run: The run's number; by default the one that counts.
            but: Names that are not asked for: a PDF may be large.

        Raises:
            UsageError: There is no such record.
        """
        number = self._chosen(student_id, run)
        with self._database.reading() as connection:
            own = of(RUNS, self._assignment(), listing_of(connection, self._assignment()).row(student_id))
            wanted: Select[Any] = (
                select(RUN_IMAGES.c.name, IMAGES.c.content)
                .join(RUNS, RUNS.c.id == RUN_IMAGES.c.run_id)
                .join(IMAGES, IMAGES.c.digest == RUN_IMAGES.c.digest)
                .where(own, RUNS.c.number == number, RUN_IMAGES.c.name.not_in(but))
                .order_by(RUN_IMAGES.c.name)
            )
            return {row.name: row.content for row in connection.execute(wanted)}

    def edits(self, student_id: str | None = None) -> tuple[Edit, ...]:
        """What people decided, oldest first: about all students, or about one, and about the whole class."""
        if not self.assignments():
            return ()
        with self._database.reading() as connection:
            listed = listing_of(connection, self._assignment())
            row = listed.row(student_id or "")
            rows = () if student_id is None else (row, student_id)
            found = edits_of(connection, self._assignment(), rows)
        if student_id is None:
            return tuple(edit for one in found if (edit := listed.of(one)) is not None)
        # what is about the row, and what this person was told
        return tuple(
            edit if edit.student_id is None else replace(edit, student_id=student_id)
            for edit in found
            if edit.student_id in (None, student_id if isinstance(edit, Released) else row)
        )

    def totals(self, student_id: str) -> tuple[Total, ...]:
        """The totals that the student was told, oldest first."""
        if not self.assignments():
            return ()
        with self._database.reading() as connection:
            row = listing_of(connection, self._assignment()).row(student_id)
            found = totals_of(connection, self._assignment(), row)
            return tuple(listed_as(total, student_id) for total in found)

    def _assignment(self) -> str:
        """The assignment that is asked about."""
        if self._assignment_id is None:
            known = self.assignments()
            if len(known) > 1:
                raise UsageError(
                    f"{self._database.name} holds several assignments: {', '.join(known)}. "
                    "Say which by --assignment."
                )
            if not known:
                raise UsageError(
                    f"{self._database.name} holds no results. Give the --out folder of `grader grade`, "
                    "and the same --gradebook if it had one."
                )
            self._assignment_id = known[0]
        return self._assignment_id

    def _chosen(self, student_id: str, run: int | None) -> int:
        numbers = self.runs(student_id)
        if run is None:
            with self._database.reading() as connection:
                row = listing_of(connection, self._assignment()).row(student_id)
                return chosen_runs(connection, self._assignment(), row).get(row, numbers[-1])
        if run not in numbers:
            raise UsageError(
                f"There is no run {run} of '{student_id}'. There are {', '.join(map(str, numbers))}."
            )
        return run

    def _parsed(self, row: Any) -> Evidence:
        found = _evidence_in(row)
        if found is None:
            raise UsageError(
                f"{self._database.name}: run {row.number} of '{row.student_id}' is damaged: it is not what "
                "the grader wrote. Grade that submission again."
            )
        return found


def _run_values(evidence: Evidence, who: str) -> dict[str, Any]:
    """The columns of a run, but for the row that it is in and its number there."""
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
    }


def _evidence_in(row: Any) -> Evidence | None:
    """The evidence that a row of `runs` holds; None where that is damaged."""
    try:
        found = evidence_from(row.evidence)
    except (ValueError, RecursionError):
        return None
    return found if found.student_id == row.student_id else None


def _row_for(evidence: Evidence, listed: Listing) -> str:
    """The row for what was found out: the student's, or a new one where that id's row is listed otherwise."""
    student_id = evidence.student_id
    if student_id in listed.current or student_id not in listed.shown:
        return listed.row(student_id)
    wanted = evidence.origin.listed_as or f"{student_id}-upload"
    others = (wanted, *(f"{wanted}-{number}" for number in range(2, len(listed.shown) + 3)))
    return next(row for row in others if row not in listed.shown)
