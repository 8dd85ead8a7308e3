"""`grader rule`: the last word on submissions that cannot be graded, lack a file, or do not exist."""

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import Desk, book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus, Score

if TYPE_CHECKING:
    from grader.domain.evidence import Evidence
    from grader.domain.result import Result
    from grader.gradebook import Snapshot


@click.command("rule")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("students", metavar="[STUDENT]...", nargs=-1)
@click.option("--missing", multiple=True, metavar="STUDENT", help="The same as STUDENT.")
@click.option(
    "--all", "everybody", is_flag=True, help="All whose total is withheld for a missing file, or was refused."
)
@click.option("--lift", is_flag=True, help="The total counts all the same.")
@click.option("--why", required=True, help="The reason: the student reads it.")
@book_options
@lower_option
def command(
    out: Path,
    students: tuple[str, ...],
    missing: tuple[str, ...],
    everybody: bool,
    lift: bool,
    why: str,
    assignment_id: str | None,
    course: Path | None,
    gradebook: str | None,
    by: str | None,
    allow_lower: bool,
) -> None:
    """Have the last word on each STUDENT of the results folder OUT whose submission lacks something.

    A file is missing, nothing could be graded, or nothing was handed in: there is no total until you decide.
    With the rule it is 0. With --lift it counts all the same: what could not be judged for lack of code gives
    no points, and what people mark counts. Whoever handed in nothing must be on a list of the class, or
    listed by the LMS.

    It is about what was handed in until now: a later attempt is graded as usual. The last word counts, and
    every word is kept with who, when and why.

    \b
    Examples:
      grader rule results 400101215 --why "No report by the deadline."
      grader rule results 400101216 --lift --why "Its notebook does not open; the report counts."
      grader rule results 400101362 --why "Nothing by the deadline."
      grader rule results --all --why "One missing file means no grade."
    """
    told, named = reason(why), tuple(dict.fromkeys((*missing, *students)))
    if bool(named) == everybody:
        raise UsageError("Say whom the rule is about: one or more STUDENTs, or --all.")
    kind = EditKind.WAIVE_MISSING if lift else EditKind.NO_GRADE
    count = 0
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:
        absent, known = _absent(at, named)

        def decide(snapshot: "Snapshot", results: "Sequence[Result]") -> Sequence[Edit]:
            nonlocal count
            scores = {one.score.student_id: one.score for one in results}
            held = {one.evidence.origin.carries for one in results if one.score.held}
            about = _meant(scores, named, known, held) if named else _open_ones(scores)
            count = len(about)
            digests = {student: snapshot.evidence[student].submission_digest for student in about}
            return [Edit(kind, at.who, now(), told, student, digests[student]) for student in about]

        cause = "rule --lift" if lift else "rule"
        revision = at.revised(cause, decide=decide, absent=absent, allow_lower=allow_lower)
    done = f"What there is counts for {count}" if lift else f"0 points for {count}"
    told_revision(revision, f"{done} of the class.")


def _absent(at: Desk, named: Sequence[str]) -> "tuple[list[Evidence], Collection[str]]":
    """What is recorded of those who handed in nothing, and all who are known without having handed in."""
    from grader.decisions.absences import absence, known_students
    from grader.results.download_accounts import standing_downloads

    if set(named) <= set(at.book.students()):
        return [], ()
    snapshot = at.book.snapshot()
    known = known_students(standing_downloads(at.book, at.out, snapshot))
    absent = [
        absence(at.assignment, student, known[student], now())
        for student in named
        if student in known and student not in snapshot.evidence
    ]
    return absent, known.keys()


def _open_ones(scores: dict[str, Score]) -> list[str]:
    """Those on whom nobody has had the last word, in order."""
    from grader.scoring.decided_by_people import RULED

    return [
        student
        for student, score in scores.items()
        if score.status in RULED and score.total is None and not score.held
    ]


def _meant(
    scores: dict[str, Score], named: Sequence[str], known: Collection[str], held: Collection[str]
) -> Sequence[str]:
    """Those who are named, where a rule can be about each.

    Args:
        known: Those of whom a list or the LMS knows.
        held: The ids on uploads of which nobody knows whose they are.

    Raises:
        UsageError: About some it cannot be.
    """
    faults = []
    for student in named:
        if student not in scores:
            near = difflib.get_close_matches(student, [*scores, *known], n=1, cutoff=0.8)
            advice = f"Did you mean {near[0]}?" if near else "Grade with --roster, so that they are known."
            faults.append(f"'{student}' is neither in the gradebook nor on a list of the class. {advice}")
        elif scores[student].status is GradeStatus.ENGINE_ERROR:
            faults.append(
                f"'{student}': the grader failed on it, which costs nobody points. Grade it again, or give "
                "the points of every item by `grader marks set`."
            )
        elif scores[student].status is GradeStatus.GRADED:
            faults.append(f"'{student}' is complete: no file is missing.")
        elif scores[student].total is None and student in held:
            faults.append(
                f"'{student}' may have handed in: an upload with this id is held. `grader owner` says whose."
            )
    if faults:
        raise UsageError("\n".join([*faults, "Nothing was changed. Correct the list."]))
    return named
