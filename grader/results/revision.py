"""Changes grades: scores and records people's new decisions, unless a released grade would fall."""

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
from grader.results.class_pages import ask_for_all_pages, write_pages
from grader.results.current_state import results_now
from grader.results.followed_class import FollowedClass
from grader.results.kept_scores import KeptScores, kept_scores
from grader.scoring import stray_targets

_ATTEMPTS = 5
Decision = Callable[[Snapshot, Sequence[Result]], Sequence[Edit]]
Review = Callable[[Sequence["Change"], Sequence[Edit]], bool]
"""Sees the totals that would change, and the new decisions; nothing is recorded unless it agrees."""


@dataclass(frozen=True)
class Change:
    """A student's total before and after.

    Attributes:
        before: None if the student never had one.
        released: What has been released to the student so far.
    """

    before: Total | None
    after: Total
    released: Release | None = None

    @property
    def lowers(self) -> bool:
        """Whether it takes away points that were released to the student."""
        before, after = self._grades
        return self.moves and is_less_than_released(after, before, self.released)

    @property
    def is_less(self) -> bool:
        """Whether the grade is less than before, or no longer known, whether released or not."""
        before, after = self._grades
        return is_less(after, before)

    @property
    def before_grade(self) -> float | None:
        """The grade before."""
        return self._grades[0]

    @property
    def after_grade(self) -> float | None:
        """The grade after."""
        return self._grades[1]

    @property
    def _grades(self) -> tuple[float | None, float | None]:
        """The grade before and after; the points without lateness if its penalty is unknown."""
        if self.before is None:
            return None, self.after.final
        if self.before.final is None:
            return self.before.points, self.after.points if self.after.final is None else self.after.final
        return self.before.final, self.after.final

    @property
    def moves(self) -> bool:
        """Whether the total differs now."""
        return self.before is None or not self.after.says_the_same_as(self.before)

    @property
    def uses_other_tokens(self) -> bool:
        """Whether another number of the course's late days is used now."""
        return self.before is not None and self.after.uses_other_late_days_than(self.before)

    def __str__(self) -> str:
        if self.before is not None and self.after.differs_in_lateness_alone(self.before):
            before = "unknown" if self.before.final is None else points(self.before.final)
            return f"{self.after.student_id}: {before} -> {final_words(self.after)}"
        total_before = "no total" if self.before is None else total_sentence(self.before)
        return f"{self.after.student_id}: {total_before} -> {total_sentence(self.after)}"

    @property
    def in_words(self) -> str:
        """The change, with the released grade if there is one."""
        if self.released is None:
            return str(self)
        return f"{self} (released: {points(self.released.points)} on {self.released.last:%Y-%m-%d})"


@dataclass(frozen=True)
class Revision:
    """The outcome of a revision.

    Attributes:
        results: Of every student, sorted.
        changes: The totals that changed.
        edits: The decisions that were added to the gradebook.
        stray: Items and checks that people decided about but that the assignment no longer has.
        recorded: Whether it is in the gradebook; otherwise it only says what would follow.
    """

    results: tuple[Result, ...]
    changes: tuple[Change, ...]
    edits: tuple[Edit, ...]
    stray: tuple[str, ...]
    recorded: bool = True

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
    review: Review | None = None,
    followed: FollowedClass | None = None,
) -> Revision:
    """Score the stored evidence with people's decisions, record the outcome, and write the pages.

    No student's code runs. With `decide`, only the students concerned are scored, and only the reports that
    change are written again.

    Args:
        out: The folder of the results.
        who: Who runs the command, and `cause` which it is.
        decide: Gives new edits from the gradebook and its results so far; by default none. It is called again
            if somebody else adds to the gradebook meanwhile.
        absent: Evidence to record for students without a submission who are not in the gradebook yet.
        allow_lower: Grades that were released may fall.
        review: Asked before anything is recorded; by default everything is.
        followed: The class in the memory of a process that writes the pages later; by default, the class is
            read, and they are written before this returns.

    Raises:
        UsageError: A released grade would fall, or the gradebook cannot be used; nothing was changed then.
    """
    if followed is None:
        scores = KeptScores(assignment, book.identity(), kept_scores(out) if decide else None)
    for _ in range(_ATTEMPTS):
        if followed is None:
            snapshot = book.snapshot(attempts=assignment.compares_attempts)
        else:
            now_followed = followed.now(assignment)
            snapshot, scores = now_followed.snapshot, now_followed.scores.tried()
        added = {
            missing.student_id: missing for missing in absent if missing.student_id not in snapshot.evidence
        }
        old_state = snapshot.state
        if added:
            snapshot = snapshot.with_evidence(added)
        so_far = results_now(assignment, snapshot, scores) if decide else []
        new = tuple(decide(snapshot, so_far)) if decide else ()
        now = clock()  # not earlier than the decisions
        decided = _with_runs(book, snapshot, new).with_edits(new)
        results = results_now(assignment, decided, scores)
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
        moving = tuple(change for change in changes if change.moves)
        if review is not None and not review(moving, new):
            stray = stray_targets(assignment, decided.edits)
            return Revision(tuple(results), moving, new, stray, recorded=False)
        moved = [change.after for change in changes if change.moves or change.uses_other_tokens]
        # None: somebody else added to the gradebook meanwhile
        new_state = book.append(new, moved, after=old_state, absent=list(added.values()), who=who)
        if new_state is not None:
            break
    else:
        raise UsageError(
            "Others kept adding to the gradebook meanwhile. Nothing was changed: run this again."
        )
    try:
        if followed is not None:
            scores.keep()
            if decide is None:
                ask_for_all_pages(out)
        else:
            final = replace(decided, state=new_state)
            write_pages(assignment, book, out, now, made=final, only_changed=decide is not None, kept=scores)
    except UsageError as error:
        raise UsageError(
            f"{error}\nWhat was decided is in the gradebook; the next command about {out} writes the pages."
        ) from None
    return Revision(
        results=tuple(results),
        changes=moving,
        edits=new,
        stray=stray_targets(assignment, decided.edits),
    )


def _with_runs(book: Gradebook, snapshot: Snapshot, new: Sequence[Edit]) -> Snapshot:
    """The state with the runs that count by the new edits."""
    chosen = {
        edit.student_id: book.evidence(edit.student_id, edit.number)
        for edit in new
        if isinstance(edit, RunChosen) and edit.student_id is not None and edit.number is not None
    }
    return snapshot.with_evidence(chosen) if chosen else snapshot


def _with_lateness(recorded: Mapping[str, Total], so_far: Sequence[Result]) -> dict[str, Total]:
    """The recorded totals; those of older versions are completed by what is left after lateness.

    Args:
        so_far: The results of the same gradebook before the decisions.
    """
    completed = dict(recorded)
    for result in so_far:
        before = completed.get(result.score.student_id)
        if before is not None and before.lateness is None:
            current_total = Total.of(result.score, who=before.who, when=before.when, cause=before.cause)
            if current_total.says_the_same_as(before):
                completed[before.student_id] = current_total
    return completed


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
                    *(f"  {change.in_words}" for change in fallen),
                ]
            )
        )
