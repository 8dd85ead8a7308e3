"""`grader rule`: what becomes of submissions with a missing file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import book_options, desk, lower_option, now, reason, told_revision
from grader.domain.edit import Edit, EditKind
from grader.domain.errors import UsageError
from grader.domain.score import GradeStatus

if TYPE_CHECKING:
    from grader.pipeline.result import Result


@click.command("rule")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("more", metavar="[STUDENT]...", nargs=-1)
@click.option("--missing", multiple=True, metavar="STUDENT", help="Whom it is about; more may follow.")
@click.option("--all", "everybody", is_flag=True, help="All whose total is withheld for a missing file.")
@click.option("--lift", is_flag=True, help="The total counts although a file is missing.")
@click.option("--why", required=True, help="The reason: the student reads it.")
@book_options
@lower_option
def command(
    out: Path,
    more: tuple[str, ...],
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
    """Apply the course's rule on missing files in the results folder OUT: one file missing, no grade.

    Until then such a total is withheld. With the rule it is 0; with --lift it counts all the same. The last
    word counts, and every word is kept with who, when and why.

    \b
    Examples:
      grader rule results --missing 400101215 --why "No report by the deadline."
      grader rule results --missing 400101216 --lift --why "Handed in by mail."
      grader rule results --all --why "One missing file means no grade."
    """
    told, named = reason(why), (*missing, *more)
    if bool(named) == everybody:
        raise UsageError("Say whom the rule is about: --missing STUDENT (several may follow), or --all.")
    kind = EditKind.WAIVE_MISSING if lift else EditKind.NO_GRADE
    count = 0
    with desk(out, assignment_id=assignment_id, course=course, gradebook=gradebook, by=by) as at:

        def decide(_: object, results: "Sequence[Result]") -> Sequence[Edit]:
            nonlocal count
            scores = {one.score.student_id: one.score for one in results}
            faults = [
                f"'{student}' is complete: no file is missing."
                if student in scores
                else f"'{student}' is not in the gradebook."
                for student in named
                if student not in scores or scores[student].status is not GradeStatus.INCOMPLETE
            ]
            if faults:
                raise UsageError("\n".join([*faults, "Nothing was changed. Mend the list."]))
            open_ones = [
                student
                for student, score in scores.items()
                if score.status is GradeStatus.INCOMPLETE and score.total is None
            ]
            students = named or open_ones
            count = len(dict.fromkeys(students))
            return [Edit(kind, at.who, now(), told, student) for student in dict.fromkeys(students)]

        revision = at.revised("rule --lift" if lift else "rule", decide=decide, allow_lower=allow_lower)
    done = "lifted" if lift else "applied"
    told_revision(revision, f"The rule on missing files is {done} for {count} of the class.")
