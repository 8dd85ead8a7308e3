"""One state of the book, as it is listed: what was found out and decided about each student."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from grader.domain.edit import Edit, Listed, Released
from grader.domain.errors import EngineError
from grader.domain.evidence import Evidence
from grader.domain.score import Total
from grader.domain.student_history import Attempt, History
from grader.domain.submission import KnownUpload
from grader.gradebook.statements import Listing, State, listing


@dataclass(frozen=True)
class BookRows:
    """What the book holds of each row: see `listing`.

    Attributes:
        evidence: Row -> what the run that counts found out.
        edits: About rows, oldest first.
        totals: Row -> the last total that was told.
        runs: Row -> the number that the record of its evidence has in the whole book; none of what is not in
            it.
        attempts: Row -> all attempts, of rows that have several; None: they were not read.
        late_days: Student -> other assignment of the book -> the late days that were used there.
    """

    evidence: Mapping[str, Evidence]
    edits: tuple[Edit, ...]
    totals: Mapping[str, Total]
    runs: Mapping[str, int] = field(default_factory=dict)
    attempts: Mapping[str, tuple[Attempt, ...]] | None = None
    late_days: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """One state of the book.

    Attributes:
        evidence: Student -> what the run that counts found out, sorted by student: the latest, unless it was
            decided otherwise.
        edits: What people decided, oldest first.
        totals: Student -> the last total that was told.
        rows: What all of that was made from.
        listing: Under which ids the rows are listed.
    """

    state: State
    evidence: Mapping[str, Evidence]
    edits: tuple[Edit, ...]
    totals: Mapping[str, Total]
    rows: BookRows
    listing: Listing

    @classmethod
    def of(cls, state: State, rows: BookRows) -> Self:
        """The state that rows make."""
        listed = listing(rows.evidence, rows.edits)
        by_id = {student_id: row for row in rows.evidence if (student_id := listed.listed(row)) is not None}
        return cls(
            state=state,
            evidence={
                student_id: listed_as(rows.evidence[row], student_id)
                for student_id, row in sorted(by_id.items())
            },
            edits=tuple(edit for one in rows.edits if (edit := listed.of(one)) is not None),
            totals={
                student_id: listed_as(rows.totals[row], student_id)
                for student_id, row in by_id.items()
                if row in rows.totals
            },
            rows=rows,
            listing=listed,
        )

    def with_edits(self, edits: Sequence[Edit]) -> Self:
        """The state with further edits, of which some may say whose a submission is."""
        new = tuple(of_row(edit, self.listing) for edit in edits)
        return type(self).of(self.state, replace(self.rows, edits=(*self.rows.edits, *new)))

    def with_evidence(self, evidence: Mapping[str, Evidence]) -> Self:
        """The state in which other runs of some students count."""
        chosen = {
            self.listing.row(student_id): listed_as(one, self.listing.row(student_id))
            for student_id, one in evidence.items()
        }
        known = {row: run for row, run in self.rows.runs.items() if row not in chosen}
        rows = replace(self.rows, evidence={**self.rows.evidence, **chosen}, runs=known)
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
        row = self.listing.row(student_id)
        own = (self.rows.attempts or {}).get(row, ()) if attempts else ()
        return History(
            tuple(replace(attempt, evidence=listed_as(attempt.evidence, student_id)) for attempt in own),
            tuple(sorted(self.rows.late_days.get(student_id, {}).items())),
        )

    def run(self, student_id: str) -> int | None:
        """The number that the record of a student's evidence has in the whole book: no other has it.

        None for what is not in the book, or was put in the place of what is.
        """
        return self.rows.runs.get(self.listing.row(student_id))

    def uploads(self) -> tuple[KnownUpload, ...]:
        """The uploads that the book has results of, also those that do not count.

        Whoever handed in nothing has a result of none.
        """
        said = self.listing.said
        return tuple(
            KnownUpload(
                row=row,
                student_id=self.listing.shown.get(row, row),
                origin=evidence.origin,
                digest=evidence.submission_digest,
                decided=row in said and said[row].by_person,
                held=row in said and said[row].held,
                counts=self.listing.listed(row) is not None,
            )
            for row, evidence in sorted(self.rows.evidence.items())
            if not evidence.absent
        )

    def relisted(self) -> dict[str, str]:
        """Id that a row had once -> the id that it has now; ids that are somebody's now are left out."""
        listed = [edit for edit in self.rows.edits if isinstance(edit, Listed)]
        told = [(edit.student_id or "", edit.listed_as) for edit in listed]
        once = [(row, row) for row, _ in told] + told
        return {
            student_id: self.listing.shown.get(row, row)
            for row, student_id in once
            if student_id not in self.evidence
        }


Record = TypeVar("Record", Evidence, Total)


def listed_as(record: Record, student_id: str) -> Record:
    """A record under another id."""
    return record if record.student_id == student_id else replace(record, student_id=student_id)


def of_row(edit: Edit, listed: Listing) -> Edit:
    """An edit about a student as one about the row.

    Those on whose a submission is are about rows, and a release is about the person who was told.
    """
    return (
        edit
        if edit.student_id is None or isinstance(edit, Listed | Released)
        else replace(edit, student_id=listed.row(edit.student_id))
    )
