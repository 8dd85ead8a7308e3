"""`grader oral`: who explains the own work in a conversation, what is asked, and how it went.

It reads the options, hands the decision to `grader.decisions.oral_checks`, has the sheets written, and prints
who is picked and why. What is a reason to ask somebody is decided in `grader.reports.whole_class.oral_flags`,
and what an outcome does to a grade in `grader.scoring.oral_hold`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import decision_options, print_revision, session
from grader.domain.errors import UsageError
from grader.domain.oral_check import FLAGS, OralOutcome, OralReason

if TYPE_CHECKING:
    from grader.decisions.oral_checks import OralPicks, OralRequest
    from grader.domain.submission_result import Result
    from grader.results.session import ClassSession, SessionRequest

NO_OUTCOME = "none"


@click.command("oral")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--share", type=click.FloatRange(0, 1), help="Draw this share of the class, and pick those flagged: 0.15."
)
@click.option("--seed", default="", metavar="TEXT", help="Of the first draw. Default: from the gradebook.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([flag.value for flag in FLAGS]),
    help="With --share: this flag picks nobody. May be repeated.",
)
@click.option(
    "--students", multiple=True, metavar="LIST", help="Pick these as well: ids, with commas. Needs --why."
)
@click.option(
    "--outcome",
    nargs=2,
    type=(str, click.Choice([*(outcome.value for outcome in OralOutcome), NO_OUTCOME])),
    metavar="STUDENT OUTCOME",
    help="passed, failed, absent or excused; `none` takes it back. Needs --why.",
)
@click.option("--why", default="", help="The reason, for the record: no student reads it.")
@click.option("--sheets", is_flag=True, help="Write the sheets again, as after new submissions.")
@decision_options
def command(
    request: "SessionRequest",
    share: float | None,
    seed: str,
    without: tuple[str, ...],
    students: tuple[str, ...],
    outcome: tuple[str, str] | None,
    why: str,
    sheets: bool,
    allow_lower: bool,
) -> None:
    """Pick students of the results folder OUT for an oral check, and record how it went.

    Without options, it lists who was picked, why, and what is still to be done. With --share, that share of
    those who handed in code is drawn by a recorded seed, and everybody with a flag is picked: much in common
    with another submission, a claim or outputs that are not those of the code, weights or a trained model
    that do not belong to it, unusual code. No flag looks at points. Whoever was picked stays picked; the same
    command later draws only what the share lacks.

    For each of them, OUT/oral gets a page of five questions about their own code, curves and mistakes, and a
    page of notes for you. The grade is held until you record the outcome. `failed` and `absent` take no
    points: `grader rule` then says what follows, or a later outcome does. `excused` means that nobody asks.
    After a new submission, the check is open again.

    \b
    Examples:
      grader oral results --share 0.15
      grader oral results --students 400101204,400101210 --why "As announced, after the presentation."
      grader oral results --outcome 400101204 passed --why "Explained the attention line by line."
      grader oral results --outcome 400101204 none --why "It was another student."
    """
    named = tuple(dict.fromkeys(name for names in students for name in names.replace(",", " ").split()))
    _require_consistent(share, seed, without, named, outcome, why)
    with session(request) as opened:
        if outcome is not None:
            _record(opened, *outcome, why=why, allow_lower=allow_lower)
        elif share is not None or named:
            from grader.decisions.oral_checks import OralRequest

            flags = frozenset(map(OralReason, without))
            _pick(opened, OralRequest(share, seed, named, why, flags), allow_lower=allow_lower)
        else:
            results = _results(opened)
            _tell_state(opened, results)
            if sheets:
                _write_sheets(opened, results)


def _require_consistent(
    share: float | None,
    seed: str,
    without: Sequence[str],
    named: Sequence[str],
    outcome: tuple[str, str] | None,
    why: str,
) -> None:
    """Check that the options say one thing.

    Raises:
        UsageError: They do not.
    """
    if outcome is not None and (share is not None or named):
        raise UsageError("--outcome is about one student; pick others in a command of its own.")
    if (seed or without) and share is None:
        raise UsageError("--seed and --without say how to draw. Add --share, such as --share 0.15.")
    if why and outcome is None and not named:
        raise UsageError("--why is the reason for --students or --outcome. Add one of them, or leave it out.")


def _results(opened: "ClassSession") -> "Sequence[Result]":
    from grader.results.current_state import current_results

    return current_results(opened.assignment, opened.book, opened.out)[1]


def _record(opened: "ClassSession", student_id: str, word: str, *, why: str, allow_lower: bool) -> None:
    from grader.decisions.oral_checks import record_oral_outcome

    outcome = None if word == NO_OUTCOME else OralOutcome(word)
    revision = record_oral_outcome(opened, student_id, outcome, why=why, allow_lower=allow_lower)
    oral = revision.score(student_id).oral
    if outcome is None:
        done = f"{student_id} is to be asked again."
    elif oral is not None and oral.to_be_ruled:
        done = f"{student_id}: {word}. The grade is held until `grader rule` says what follows."
    else:
        done = f"{student_id}: {word}."
    print_revision(revision, done)


def _pick(opened: "ClassSession", request: "OralRequest", *, allow_lower: bool) -> None:
    from grader.decisions.oral_checks import pick_for_oral
    from grader.domain.formatting import counted, printable
    from grader.reports.whole_class.oral_flags import oral_flags
    from grader.reports.whole_class.similarity_record import previous_similarity

    similarity = previous_similarity(opened.out, opened.assignment.id)
    if request.share is not None and similarity is None and OralReason.SIMILAR not in request.without:
        click.echo("note: the submissions were not compared: run `grader similar` first.", err=True)
    picks = pick_for_oral(
        opened,
        request,
        lambda results: oral_flags(opened.assignment, results, similarity),
        allow_lower=allow_lower,
    )
    for edit in picks.picked:
        click.echo(printable(f"{edit.student_id}  {'; '.join(map(str, edit.reasons))}"))
    click.echo(f"{counted(len(picks.picked), 'student')} picked. {_drawn(picks)}".rstrip())
    _write_sheets(opened, picks.revision.results)


def _drawn(picks: "OralPicks") -> str:
    """How the draw was made, in a sentence; empty if there was none."""
    draw = picks.draw
    if draw is None or draw.share is None:
        return ""
    return f"The draw has the seed '{draw.seed}', a share of {draw.share:g}, and {picks.can_be_asked} to ask."


def _write_sheets(opened: "ClassSession", results: "Sequence[Result]") -> None:
    from grader.domain.formatting import counted
    from grader.results.oral_sheets import NOTES, QUESTIONS, write_oral_sheets

    written = write_oral_sheets(opened.assignment, opened.book, results, opened.out)
    for student_id, count in written.few.items():
        click.echo(
            f"note: {student_id}: {counted(count, 'question')} could be made from this work.", err=True
        )
    sheets = counted(len(written.students), "sheet")
    click.echo(f"{written.folder}: {sheets} in {QUESTIONS}, and the notes on them in {NOTES}.")


def _tell_state(opened: "ClassSession", results: "Sequence[Result]") -> None:
    """Print who was picked, why, and what is still to be done."""
    from grader.decisions.decision_words import oral_state
    from grader.domain.formatting import printable

    checks = [(result.score.student_id, result.score.oral) for result in results]
    picked = [(student_id, check) for student_id, check in checks if check is not None]
    if not picked:
        click.echo("Nobody was picked for an oral check. `--share 0.15` draws some and picks those flagged.")
        return
    picked.sort(key=lambda pair: (not pair[1].holds, not pair[1].to_be_asked, pair[0]))
    width = max(len(student_id) for student_id, _ in picked)
    for student_id, check in picked:
        state = f"{oral_state(check)}: `grader rule`" if check.to_be_ruled else oral_state(check)
        click.echo(printable(f"{student_id:<{width}}  {state}. {'; '.join(map(str, check.reasons))}"))
    asked = sum(check.to_be_asked for _, check in picked)
    ruled = sum(check.to_be_ruled for _, check in picked)
    click.echo(f"{len(picked)} picked: {asked} to be asked, {ruled} to be ruled on.")
