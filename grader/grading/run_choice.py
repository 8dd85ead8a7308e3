"""Which run counts when a submission was examined again: a total that was told never falls in silence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.edit import Because, Edit, Listed, RunChosen, standing_owner
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.total import Total, TotalFigures
from grader.gradebook import Gradebook
from grader.scoring import score


@dataclass(frozen=True)
class CountedRun:
    """What counts once a new run is in the book.

    Attributes:
        evidence: Of the run that counts: the new one, or an earlier one.
        edits: What is decided with it.
    """

    evidence: Evidence
    score: Score
    edits: tuple[Edit, ...] = ()


def outcome(
    assignment: Assignment,
    book: Gradebook,
    evidence: Evidence,
    *,
    who: str,
    now: datetime,
    allow_lower: bool,
    held: str = "",
) -> CountedRun:
    """What counts when a new run is added to the book.

    The new run does. But where it gives less than was told and its files are those of the run that counts so
    far, that one goes on counting if it gives more. Where the last attempt gives less, it counts and a person
    is asked. An earlier attempt that a person chose outweighs the others that were there.

    Args:
        evidence: What the new run found out.
        who: Who runs it.
        allow_lower: The new run counts, whatever it gives.
        held: Why nobody knows whose the submission is; empty when somebody does, or the book knows.
    """
    student_id = evidence.student_id
    edits = book.edits(student_id)
    if held and standing_owner(edits) is None:
        edit = Listed(
            who=who,
            when=now,
            why=held,
            student_id=student_id,
            listed_as=student_id,
            by_person=False,
            held=True,
        )
        return _with(assignment, evidence, edits, (edit,))  # the first run of it
    new = CountedRun(evidence, score(assignment, evidence, edits=edits))
    totals = book.totals(student_id)
    if not totals:
        return new

    told, after = totals[-1], Total.of(new.score)

    def decided(because: Because, run: int | None = None, *, fallen: bool = True) -> tuple[Edit, ...]:
        figures = (TotalFigures.of(told), TotalFigures.of(after)) if fallen else (None, None)
        return (
            RunChosen(
                who=who,
                when=now,
                why="",
                student_id=student_id,
                number=run,
                because=because,
                told=figures[0],
                gave=figures[1],
            ),
        )

    records = {record.number: record for record in book.run_records(student_id)}
    counting, digest = book.counting(student_id), evidence.submission_digest
    earlier = [record.submission_digest for record in records.values()]
    if digest != records[counting].submission_digest and digest in earlier:
        again = decided(Because.CAME_AGAIN, counting, fallen=False)
        return _with(assignment, book.evidence(student_id, counting), edits, again)

    same_files = digest == records[counting].submission_digest
    falls = after.has_fewer_points_than(told)
    # when the same files came is not an outcome of a run, and what lateness costs is asked where nobody
    # knows it
    if not same_files and after.final is not None:
        falls = after.falls_from(told)
    # what was ruled of the files before gave nothing, and is not about these
    ruled = not same_files and score(assignment, book.evidence(student_id, counting), edits=edits).closed
    if allow_lower or ruled or not falls:
        stands = any(isinstance(edit, RunChosen) for edit in edits)
        latest = decided(Because.LATEST, fallen=False) if stands else ()
        return _with(assignment, evidence, edits, latest)
    if not same_files:
        return _with(assignment, evidence, edits, decided(Because.FELL))
    old = book.evidence(student_id, counting)
    if after.has_fewer_points_than(Total.of(score(assignment, old, edits=edits))):
        return _with(assignment, old, edits, decided(Because.KEPT, counting))
    return _with(assignment, evidence, edits, decided(Because.FELL_AGAIN))


def _with(
    assignment: Assignment, evidence: Evidence, edits: Sequence[Edit], new: tuple[Edit, ...]
) -> CountedRun:
    return CountedRun(evidence, score(assignment, evidence, edits=(*edits, *new)), new)
