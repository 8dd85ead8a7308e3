"""`grader requests`: regrade requests of students, and the answers to them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import decision_options, print_revision, session, session_options
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.decisions.change_rates import ChangeRate
    from grader.decisions.regrade_answers import NewAnswer, OpenRequest
    from grader.decisions.regrade_requests import NewRequest
    from grader.domain.edit import Edit, RegradeAsked
    from grader.results.session import ClassSession, SessionRequest


@click.group("requests")
def command() -> None:
    """Take regrade requests of students, and answer them.

    The assignment says how long after a release students may dispute points, and how often:
    `[regrade_requests]` in assignment.toml. The student's report shows each request with its answer.

    \b
    Examples:
      grader requests ask results 400101204 q6 --why "Part b is on page 4."
      grader requests collect results form.csv
      grader requests list results
      grader requests answer results 400101204 q6 7.5 --why "It is: half of the missing points."
    """


@command.command("ask")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("item")
@click.option("--why", required=True, help="The student's words: the student reads them in the report.")
@click.option("--at", metavar="TIME", help="When the student asked: 2026-03-02T18:00+01:00. Default: now.")
@click.option("--anyway", is_flag=True, help="Take it although it is late, or one too many.")
@session_options
def ask(request: "SessionRequest", student: str, item: str, why: str, at: str | None, anyway: bool) -> None:
    """Take a request of STUDENT about ITEM of the results folder OUT.

    ITEM is a rubric item, or a part of one (q10.class_token). The request changes no points.

    \b
    Example:
      grader requests ask results 400101204 q6 --why "Part b is on page 4."
    """
    from grader.decisions.regrade_requests import NewRequest
    from grader.decisions.request_sheets import asked_at

    when = None if at is None else asked_at(at, "--at")
    _take(request, [NewRequest(student, item, why, when)], anyway=anyway)


@command.command("collect")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--anyway", is_flag=True, help="Take also those that are late, or too many.")
@session_options
def collect(request: "SessionRequest", file: Path, anyway: bool) -> None:
    """Take the requests of the table FILE (.csv or .xlsx) into the results folder OUT.

    Its columns are `student_id`, `item` and `reason`, as a form of the LMS gives them, and perhaps `asked`,
    with the time. Requests that were taken before change nothing, so you can take a growing table again. If
    any row is wrong, all wrong rows are listed and nothing is taken.

    \b
    Example:
      grader requests collect results form.csv
    """
    from grader.decisions.request_sheets import read_requests

    _take(request, read_requests(file), anyway=anyway)


def _take(request: "SessionRequest", new: "Sequence[NewRequest]", *, anyway: bool) -> None:
    from grader.decisions.regrade_requests import take_requests
    from grader.domain.formatting import counted

    with session(request) as opened:
        taken = take_requests(opened, new, anyway=anyway)
    known = f", {taken.known} had been taken before" if taken.known else ""
    done = f"{counted(len(taken.taken), 'request')} taken{known}."
    click.echo(f"{done} `grader requests list` shows what is open.")


@command.command("list")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--mine", is_flag=True, help="Only requests that you (--by) should answer.")
@session_options
def list_(request: "SessionRequest", mine: bool) -> None:
    """Show the open requests of the results folder OUT, and how often answers changed points.

    Each is shown with the disputed points, who gave them, and the comment. Where more than a fifth of at
    least five answers changed the points of an item, or of a marker, the rubric is unclear: this is said.

    \b
    Examples:
      grader requests list results
      grader requests list results --mine --by ta1
    """
    from grader.decisions.regrade_answers import stray_requests

    with session(request) as opened:
        waiting = [one for one in _open(opened) if not mine or _is_for(opened, one)]
        snapshot = opened.book.snapshot()
        stray = stray_requests(opened.assignment, snapshot)
    for one in waiting:
        _tell(one)
    for edit in stray:
        _tell_stray(edit)
    if not waiting and not stray:
        click.echo("No request is open.")
    _tell_rates(snapshot.edits)


def _tell_stray(edit: "RegradeAsked") -> None:
    from grader.domain.formatting import printable, stamp

    lost = "the rubric has no such item any more: answer without points"
    click.echo(printable(f"{edit.student_id}  {edit.target}: {lost}; asked {stamp(edit.asked)}"))
    click.echo(printable(f"  asks: {edit.why}"))


def _open(opened: "ClassSession") -> "Sequence[OpenRequest]":
    from grader.decisions.regrade_answers import open_requests
    from grader.results.current_state import current_results

    return open_requests(opened.assignment, *current_results(opened.assignment, opened.book, opened.out))


def _is_for(opened: "ClassSession", one: "OpenRequest") -> bool:
    """Whether the person should answer it: as the marker of the points or, if the course says so, another."""
    rules = opened.assignment.regrade_rules
    is_marker = one.edit.marker == opened.who
    return not is_marker if rules is not None and rules.by_another else is_marker or not one.edit.marker


def _tell(one: "OpenRequest") -> None:
    from grader.decisions.change_rates import by_marker
    from grader.domain.formatting import points, printable, stamp

    edit = one.edit
    now = "open" if one.points is None else points(one.points)
    head = f"{edit.student_id}  {edit.target}: {now} of {points(one.maximum)} by {by_marker(edit)}"
    click.echo(printable(f"{head}, asked {stamp(edit.asked)}"))
    click.echo(printable(f"  asks: {edit.why}"))
    if one.comment:
        click.echo(printable(f"  was told: {one.comment}"))


def _tell_rates(edits: "Sequence[Edit]") -> None:
    from grader.decisions.change_rates import by_item, by_marker, change_rates

    items, markers = change_rates(edits, by_item), change_rates(edits, by_marker)
    if not items:
        return
    click.echo("Answers that changed points:")
    for rate in (*items, *markers):
        _tell_rate(rate)


def _tell_rate(rate: "ChangeRate") -> None:
    from grader.domain.formatting import printable

    unclear = ": the rubric is unclear" if rate.is_high else ""
    click.echo(
        printable(f"  {rate.name}: {rate.changed} of {rate.answered} ({100 * rate.share:.0f} %){unclear}")
    )


@command.command("export")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--mine", is_flag=True, help="Only requests that you (--by) should answer.")
@click.option("--force", is_flag=True, help="Overwrite an existing sheet.")
@session_options
def export(request: "SessionRequest", file: Path, mine: bool, force: bool) -> None:
    """Write the sheet FILE (.csv or .xlsx) with the open requests of the results folder OUT.

    Fill in `answer`, and `points` where they change; then `grader requests import` takes it.

    \b
    Example:
      grader requests export results requests.xlsx --mine --by ta1
    """
    from grader.decisions.request_sheets import write_answer_sheet
    from grader.domain.formatting import counted

    if file.exists() and not force:
        raise UsageError(f"{file} exists. Give another name, or --force to overwrite it.")
    with session(request) as opened:
        waiting = [one for one in _open(opened) if not mine or _is_for(opened, one)]
    if not waiting:
        raise UsageError("No request is open, so there is nothing to write.")
    write_answer_sheet(file, waiting)
    click.echo(f"{file}: {counted(len(waiting), 'request')}.")


@command.command("answer")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("item")
@click.argument("points", required=False)
@click.option("--why", required=True, help="The answer: the student reads it.")
@decision_options
def answer(
    request: "SessionRequest", student: str, item: str, points: str | None, why: str, allow_lower: bool
) -> None:
    """Answer the open request of STUDENT about ITEM of the results folder OUT.

    Without POINTS, the points stay. New points are a mark like any other: they count for the whole team.

    \b
    Examples:
      grader requests answer results 400101204 q6 --why "Page 4 answers part a; b is missing."
      grader requests answer results 400101204 q6 7.5 --why "It is there: half of the missing points."
    """
    from grader.decisions.mark_entries import MarkFault, points_in
    from grader.decisions.regrade_answers import NewAnswer

    value = points_in(points) if points is not None else None
    if isinstance(value, MarkFault):
        raise UsageError(f"POINTS: {value}")
    if points is not None and value is None:
        raise UsageError(f"POINTS: '{points}' is no number. Leave it out to keep the points.")
    _answer(request, [NewAnswer(student, item, why, value)], allow_lower=allow_lower)


@command.command("import")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@decision_options
def import_(request: "SessionRequest", file: Path, allow_lower: bool) -> None:
    """Take the answers of the sheet FILE into the results folder OUT.

    Rows without an answer and without points are left open. If any row is wrong, or was answered meanwhile,
    all such rows are listed and nothing is taken.

    \b
    Example:
      grader requests import results requests.xlsx --by ta1
    """
    from grader.decisions.request_sheets import read_answers

    answers = read_answers(file)
    if not answers:
        raise UsageError(f"{file}: no answer is filled in.")
    _answer(request, answers, allow_lower=allow_lower)


def _answer(request: "SessionRequest", new: "Sequence[NewAnswer]", *, allow_lower: bool) -> None:
    from grader.decisions.regrade_answers import answer_requests
    from grader.domain.formatting import counted, printable

    with session(request) as opened:
        given = answer_requests(opened, new, allow_lower=allow_lower)
    for note in given.notes:
        click.echo(printable(str(note)))
    print_revision(given.revision, f"{counted(len(given.answers), 'request')} answered.")
