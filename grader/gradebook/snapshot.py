"""A state of the gradebook by current ids: evidence and decisions about each student.

`Gradebook.snapshot` makes it. Grading, results, decisions and publishing read it; scoring never sees it, but
gets what `history` returns of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from grader.domain.edit import Edit, OwnerAssigned, Released
from grader.domain.errors import EngineError
from grader.domain.evidence import Evidence
from grader.domain.run_facts import RunFacts
from grader.domain.score import Total
from grader.domain.submission import RecordedUpload
from grader.domain.submission_result import Attempt, History
from grader.gradebook.statements import CurrentIds, State, current_ids


@dataclass(frozen=True)
class BookRows:
    """The content of the gradebook by row: see `current_ids`.

    Attributes:
        evidence: Row -> the evidence of the run that counts.
        edits: About rows, oldest first.
        totals: Row -> the last recorded total.
        runs: Row -> the number of its evidence's record in the whole gradebook; without evidence that is not
            in it.
        attempts: Row -> all attempts, of rows that have several; None: they were not read.
        late_days: Student -> other assignment of the gradebook -> the late days that were used there.
    """

    evidence: Mapping[str, Evidence]
    edits: tuple[Edit, ...]
    totals: Mapping[str, Total]
    runs: Mapping[str, int] = field(default_factory=dict)
    attempts: Mapping[str, tuple[Attempt, ...]] | None = None
    late_days: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """A state of the gradebook.

    Attributes:
        evidence: Student -> the evidence of the run that counts, sorted by student: the latest, unless a
            decision names another.
        edits: All edits, oldest first.
        totals: Student -> the last recorded total.
        rows: The rows from which all of that was made.
        ids_now: The ids under which the rows are listed.
    """

    state: State
    evidence: Mapping[str, Evidence]
    edits: tuple[Edit, ...]
    totals: Mapping[str, Total]
    rows: BookRows
    ids_now: CurrentIds

    @classmethod
    def of(cls, state: State, rows: BookRows) -> Self:
        """The state given by rows."""
        ids_now = current_ids(rows.evidence, rows.edits)
        by_id = {student_id: row for row in rows.evidence if (student_id := ids_now.id_of(row)) is not None}
        return cls(
            state=state,
            evidence={
                student_id: with_student_id(rows.evidence[row], student_id)
                for student_id, row in sorted(by_id.items())
            },
            edits=tuple(edit for row_edit in rows.edits if (edit := ids_now.updated(row_edit)) is not None),
            totals={
                student_id: with_student_id(rows.totals[row], student_id)
                for student_id, row in by_id.items()
                if row in rows.totals
            },
            rows=rows,
            ids_now=ids_now,
        )

    def with_edits(self, edits: Sequence[Edit]) -> Self:
        """The state with further edits, some of which may say whose a submission is."""
        new = tuple(of_row(edit, self.ids_now) for edit in edits)
        return type(self).of(self.state, replace(self.rows, edits=(*self.rows.edits, *new)))

    def with_evidence(self, evidence: Mapping[str, Evidence]) -> Self:
        """The state in which other runs of some students count."""
        chosen = {
            self.ids_now.row_of(student_id): with_student_id(
                student_evidence, self.ids_now.row_of(student_id)
            )
            for student_id, student_evidence in evidence.items()
        }
        other_runs = {row: run for row, run in self.rows.runs.items() if row not in chosen}
        rows = replace(self.rows, evidence={**self.rows.evidence, **chosen}, runs=other_runs)
        return type(self).of(self.state, rows)

    def history(self, student_id: str, *, attempts: bool) -> History:
        """What else a student's score depends on.

        Args:
            attempts: The rubric compares attempts: they must have been read.

        Raises:
            EngineError: They were not.
        """
        if attempts and self.rows.attempts is None:
            raise EngineError(
                "The gradebook was read without the attempts that the rule on resubmissions compares. "
                "Report this to the grader's authors."
            )
        row = self.ids_now.row_of(student_id)
        student_attempts = (self.rows.attempts or {}).get(row, ()) if attempts else ()
        return History(
            tuple(
                replace(attempt, evidence=with_student_id(attempt.evidence, student_id))
                for attempt in student_attempts
            ),
            tuple(sorted(self.rows.late_days.get(student_id, {}).items())),
        )

    def run(self, student_id: str) -> int | None:
        """The number of a student's evidence record, unique in the whole gradebook.

        None for evidence that is not in the gradebook, or that replaced what is.
        """
        return self.rows.runs.get(self.ids_now.row_of(student_id))

    def uploads(self) -> tuple[RecordedUpload, ...]:
        """The uploads that the gradebook has results of, including those that do not count.

        The result of a student who handed in nothing has no upload.
        """
        facts = {row: RunFacts.of(evidence) for row, evidence in self.rows.evidence.items()}
        return recorded_uploads(facts, self.ids_now)

    def changed_ids(self) -> dict[str, str]:
        """Former id of a row -> its current id; ids that are in use now are left out."""
        owner_edits = [edit for edit in self.rows.edits if isinstance(edit, OwnerAssigned)]
        rows_and_ids = [(edit.student_id or "", edit.listed_as) for edit in owner_edits]
        former_ids = [(row, row) for row, _ in rows_and_ids] + rows_and_ids
        return {
            student_id: self.ids_now.id_by_row.get(row, row)
            for row, student_id in former_ids
            if student_id not in self.evidence
        }


def recorded_uploads(facts: Mapping[str, RunFacts], ids_now: CurrentIds) -> tuple[RecordedUpload, ...]:
    """The uploads of rows, sorted by row.

    Args:
        facts: Row -> facts about the run that counts.
    """
    decisions = ids_now.owner_edits
    return tuple(
        RecordedUpload(
            row=row,
            student_id=ids_now.id_by_row.get(row, row),
            origin=of_run.origin,
            digest=of_run.submission_digest,
            decided=row in decisions and decisions[row].by_person,
            held=row in decisions and decisions[row].held,
            counts=ids_now.id_of(row) is not None,
        )
        for row, of_run in sorted(facts.items())
        if not of_run.absent
    )


Record = TypeVar("Record", Evidence, Total)


def with_student_id(record: Record, student_id: str) -> Record:
    """A record under another id."""
    return record if record.student_id == student_id else replace(record, student_id=student_id)


def of_row(edit: Edit, ids_now: CurrentIds) -> Edit:
    """An edit about a student as one about the row.

    Edits about whose a submission is are about rows already, and a release is about the person who got it.
    """
    return (
        edit
        if edit.student_id is None or isinstance(edit, OwnerAssigned | Released)
        else replace(edit, student_id=ids_now.row_of(edit.student_id))
    )
