"""Grades changed: what people decide now is scored and kept, unless a released grade would fall."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, RunChosen
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.formatting import points
from grader.domain.score import (
    Release,
    Score,
    Total,
    final_words,
    is_less,
    is_less_than_released,
    total_sentence,
)
from grader.domain.submission_result import Result
from grader.gradebook import Gradebook, Snapshot
from grader.results.class_pages import write_pages
from grader.results.current_state import results_now
from grader.results.kept_scores import KnownScores, kept_scores
from grader.scoring import stray_targets

_ATTEMPTS = 5
Decision = Callable[[Snapshot, Sequence[Result]], Sequence[Edit]]


@dataclass(frozen=True)
class Change:
    """A student's total before and after.

    Attributes:
        before: None when none was ever told.
        released: What has been released to the student so far.
    """

    before: Total | None
    after: Total
    released: Release | None = None

    @property
    def lowers(self) -> bool:
        """Whether it takes from the student what was released."""
        before, after = self._grades
        return self.moves and is_less_than_released(after, before, self.released)

    @property
    def is_less(self) -> bool:
        """Whether the grade is less than before, or not known any more, released or not."""
        before, after = self._grades
        return is_less(after, before)

    @property
    def _grades(self) -> tuple[float | None, float | None]:
        """The grade before and after: where nobody knows what lateness costs, the points without it."""
        if self.before is None:
            return None, self.after.final
        if self.before.final is None:
            return self.before.points, self.after.points if self.after.final is None else self.after.final
        return self.before.final, self.after.final

    @property
    def moves(self) -> bool:
        """Whether the total says something else now."""
        return self.before is None or not self.after.says_the_same_as(self.before)

    @property
    def uses_other_tokens(self) -> bool:
        """Whether another number of the course's late days is used now."""
        return self.before is not None and self.after.uses_other_tokens_than(self.before)

    def __str__(self) -> str:
        if self.before is not None and self.after.differs_in_lateness_alone(self.before):
            before = "unknown" if self.before.final is None else points(self.before.final)
            return f"{self.after.student_id}: {before} -> {final_words(self.after)}"
        told = "no total" if self.before is None else total_sentence(self.before)
        return f"{self.after.student_id}: {told} -> {total_sentence(self.after)}"

    @property
    def told(self) -> str:
        """The change beside what the student was told."""
        if self.released is None:
            return str(self)
        return f"{self} (released: {points(self.released.points)} on {self.released.last:%Y-%m-%d})"


@dataclass(frozen=True)
class Revision:
    """What a revision came to.

    Attributes:
        results: Of every student, sorted.
        changes: The totals that say something else now.
        edits: What was decided and added to the book.
        stray: Items and checks that people decided about and that the assignment no longer has.
    """

    results: tuple[Result, ...]
    changes: tuple[Change, ...]
    edits: tuple[Edit, ...]
    stray: tuple[str, ...]

    def score(self, student_id: str) -> Score:
        """A student's score now.

        Raises:
            KeyError: There is no such student.
        """
        for result in self.results:
            if result.score.student_id == student_id:
                return result.score
        raise KeyError(student_id)


def revised(
    assignment: Assignment,
    book: Gradebook,
    out: Path,
    *,
    who: str,
    cause: str,
    clock: Callable[[], datetime],
    decide: Decision | None = None,
    absent: Sequence[Evidence] = (),
    allow_lower: bool = False,
) -> Revision:
    """Score the stored evidence with what people decided, keep the outcome, and write what tells of it.

    No student's code runs. With `decide`, only those are scored whom it concerns, and only the reports that
    tell something else now are written again.

    Args:
        out: The folder of the results.
        who: Who runs the command, and `cause` which it is.
        decide: New edits, from the book and its results so far; by default none. It is asked again when
            somebody else adds to the book meanwhile.
        absent: Evidence to record for students without a submission who are not in the book yet.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: A released grade would fall, or the book cannot be used; then nothing was changed.
    """
    known = KnownScores(assignment, book.identity(), kept_scores(out) if decide else None)
    for _ in range(_ATTEMPTS):
        snapshot = book.snapshot(attempts=assignment.compares_attempts)
        added = {one.student_id: one for one in absent if one.student_id not in snapshot.evidence}
        old_state = snapshot.state
        if added:
            snapshot = snapshot.with_evidence(added)
        so_far = results_now(assignment, snapshot, known) if decide else []
        new = tuple(decide(snapshot, so_far)) if decide else ()
        now = clock()  # not before what was decided
        decided = _with_runs(book, snapshot, new).with_edits(new)
        results = results_now(assignment, decided, known)
        recorded_totals = _with_lateness(snapshot.totals, so_far)
        changes = [
            Change(
                recorded_totals.get(result.score.student_id),
                Total.of(result.score, who=who, when=now, cause=cause),
                result.score.released,
            )
            for result in results
        ]
        if not allow_lower:
            _require_no_loss(changes)
        moved = [change.after for change in changes if change.moves or change.uses_other_tokens]
        # None: somebody else added to the book meanwhile
        new_state = book.append(new, moved, after=old_state, absent=list(added.values()), who=who)
        if new_state is not None:
            break
    else:
        raise UsageError(
            "Others kept adding to the gradebook meanwhile. Nothing was changed: run this again."
        )
    final = replace(decided, state=new_state)
    try:
        write_pages(assignment, book, out, now, made=final, only_changed=decide is not None, known=known)
    except UsageError as error:
        raise UsageError(
            f"{error}\nWhat was decided is in the gradebook; the next command about {out} writes the pages."
        ) from None
    return Revision(
        results=tuple(results),
        changes=tuple(change for change in changes if change.moves),
        edits=new,
        stray=stray_targets(assignment, decided.edits),
    )


def _with_runs(book: Gradebook, snapshot: Snapshot, new: Sequence[Edit]) -> Snapshot:
    """The state with the runs that new edits say are to count."""
    chosen = {
        edit.student_id: book.evidence(edit.student_id, edit.number)
        for edit in new
        if isinstance(edit, RunChosen) and edit.student_id is not None and edit.number is not None
    }
    return snapshot.with_evidence(chosen) if chosen else snapshot


def _with_lateness(told: Mapping[str, Total], so_far: Sequence[Result]) -> dict[str, Total]:
    """The totals as they were told; those that older versions recorded get what was left after lateness.

    Args:
        so_far: What the same book came to before anything was decided.
    """
    known = dict(told)
    for result in so_far:
        before = known.get(result.score.student_id)
        if before is not None and before.lateness is None:
            now = Total.of(result.score, who=before.who, when=before.when, cause=before.cause)
            if now.says_the_same_as(before):
                known[before.student_id] = now
    return known


def _require_no_loss(changes: Sequence[Change]) -> None:
    fallen = [change for change in changes if change.lowers]
    if fallen:
        count = (
            "A grade that was released" if len(fallen) == 1 else f"{len(fallen)} grades that were released"
        )
        raise UsageError(
            "\n".join(
                [
                    f"{count} would fall. Nothing was changed. If that is meant, add --allow-lower.",
                    *(f"  {change.told}" for change in fallen),
                ]
            )
        )
