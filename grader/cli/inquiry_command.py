"""`grader inquiries`: questions to students about what looks suspicious in their work, and what follows."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import decision_options, print_revision, session, session_options
from grader.domain.errors import UsageError
from grader.domain.inquiry import InquiryOutcome
from grader.domain.oral_check import FLAGS, OralReason

if TYPE_CHECKING:
    from grader.domain.score import Score
    from grader.results.session import ClassSession, SessionRequest

NO_OUTCOME = "none"
_ABOUT = [reason.value for reason in (*FLAGS, OralReason.CHOSEN)]


@click.group("inquiries")
def command() -> None:
    """Ask students about what looks suspicious in their work, and say what follows from the answers.

    No suspicion takes points: not similar submissions, data in the source, unusual code, nor a claim. You
    decide who is asked. The student reads the question with the line in the report, and answers there or to
    you. Only what you confirm, with a reason, may change points.

    \b
    Examples:
      grader inquiries list results
      grader inquiries ask results 400101204 code --line homework.py:41
      grader inquiries settle results 400101204 1 dismissed --why "It is from the handout."
    """


@command.command("list")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--open", "only_open", is_flag=True, help="Only questions that were asked and are open.")
@session_options
def list_(request: "SessionRequest", only_open: bool) -> None:
    """Show the questions of the results folder OUT, and what was found that nobody was asked about.

    \b
    Example:
      grader inquiries list results
    """
    from grader.domain.formatting import printable
    from grader.results.current_state import current_results

    with session(request) as opened:
        results = current_results(opened.assignment, opened.book, opened.out)[1]
        lines = list(_asked([result.score for result in results]))
        found = [] if only_open else list(_found(opened))
    for line in lines:
        click.echo(printable(line))
    if not lines:
        click.echo("No question is open.")
    if found:
        click.echo("Found, and not asked about:")
    for line in found:
        click.echo(printable(line))


def _asked(scores: "list[Score]") -> Iterator[str]:
    """The open questions, those with an answer first."""
    waiting = [(score.student_id, one) for score in scores for one in score.inquiries if one.is_open]
    for student_id, one in sorted(waiting, key=lambda pair: (not pair[1].to_be_settled, pair[0])):
        state = "to be settled" if one.to_be_settled else "not answered yet"
        where = f" at {one.place}" if one.place else ""
        yield f"{student_id}  question {one.number} ({one.about.value}{where}): {state}"
        if one.quoted:
            yield f"  quotes: {one.quoted}"
        yield f"  asks: {one.question}"
        if one.explanation:
            yield f"  answer: {one.explanation}"


def _found(opened: "ClassSession") -> Iterator[str]:
    """What was found in the work, without what the student was asked about already."""
    from grader.reports.whole_class.oral_flags import oral_flags
    from grader.reports.whole_class.similarity_record import previous_similarity
    from grader.results.current_state import current_results

    results = current_results(opened.assignment, opened.book, opened.out)[1]
    similarity = previous_similarity(opened.out, opened.assignment.id)
    asked = {(one.score.student_id, inquiry.about) for one in results for inquiry in one.score.inquiries}
    for student_id, flags in oral_flags(opened.assignment, results, similarity).items():
        for flag in flags:
            if (student_id, flag.reason) not in asked:
                yield f"  {student_id}  {flag}"


@command.command("ask")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("about", type=click.Choice(_ABOUT))
@click.option("--line", default="", metavar="PLACE", help="As reports name it: homework.py:41.")
@click.option("--question", default="", metavar="TEXT", help="What the student reads. Default: by ABOUT.")
@session_options
def ask(request: "SessionRequest", student: str, about: str, line: str, question: str) -> None:
    """Ask STUDENT about the work: ABOUT what, at which line.

    `similar`, `code` and `watch` need --line; a claim quotes itself; `chosen` is whatever you saw, and needs
    --question. The question takes no points, and must name nobody else. The student reads it in the report:
    publish it again.

    \b
    Examples:
      grader inquiries ask results 400101204 code --line homework.py:41
      grader inquiries ask results 400101204 similar --line "cell 9, line 3"
      grader inquiries ask results 400101204 chosen --line homework.py:7 --question "Where is this from?"
    """
    from grader.decisions.asking_students import NewInquiry, ask_student
    from grader.domain.formatting import printable

    new = NewInquiry(student, OralReason(about), line, question)
    with session(request) as opened:
        revision = ask_student(opened, new)
    one = revision.score(student).inquiries[-1]
    where = f" about {one.place}" if one.place else ""
    click.echo(printable(f"{student} is asked question {one.number}{where}: {one.question}"))
    click.echo("It is in the report; `grader publish --update` hands that out. Points stay as they are.")


@command.command("answer")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("number", type=int)
@click.option("--why", required=True, help="The student's words: the student reads them in the report.")
@click.option("--at", metavar="TIME", help="When the student answered: 2026-03-02T18:00+01:00. Default: now.")
@session_options
def answer(request: "SessionRequest", student: str, number: int, why: str, at: str | None) -> None:
    """Record what STUDENT answers to question NUMBER, as by mail. A later answer replaces it.

    \b
    Example:
      grader inquiries answer results 400101204 1 --why "I wrote it with the tutorial of week 3."
    """
    from grader.decisions.asking_students import record_explanation
    from grader.decisions.request_sheets import asked_at

    when = None if at is None else asked_at(at, "--at")
    with session(request) as opened:
        record_explanation(opened, student, number, why, explained=when)
    click.echo(f"The answer of {student} to question {number} is recorded.")


@command.command("settle")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student")
@click.argument("number", type=int)
@click.argument("outcome", type=click.Choice([*(one.value for one in InquiryOutcome), NO_OUTCOME]))
@click.argument("item", required=False)
@click.argument("points", required=False)
@click.option("--why", required=True, help="The reason: the student reads it.")
@click.option("--unanswered", is_flag=True, help="Decide although the student has not answered.")
@decision_options
def settle(
    request: "SessionRequest",
    student: str,
    number: int,
    outcome: str,
    item: str | None,
    points: str | None,
    why: str,
    unanswered: bool,
    allow_lower: bool,
) -> None:
    """Say what follows from question NUMBER to STUDENT: `dismissed`, `confirmed`, or `none` to take it back.

    With `confirmed`, ITEM and POINTS give the points that the item has from now on, for this student alone.
    Taking it back opens the question again; points stay until `grader marks set` changes them.

    \b
    Examples:
      grader inquiries settle results 400101204 1 dismissed --why "It is from the handout."
      grader inquiries settle results 400101204 1 confirmed model 0 --why "The part is not your own work."
      grader inquiries settle results 400101204 1 none --why "The handout does have it."
    """
    from grader.decisions.asking_students import Settlement, settle_inquiry
    from grader.decisions.mark_entries import MarkFault, points_in
    from grader.scoring.inquiries import inquiries

    value = points_in(points) if points is not None else None
    if isinstance(value, MarkFault):
        raise UsageError(f"POINTS: {value}")
    if item is not None and value is None:
        raise UsageError("POINTS: say how many the item has from now on, or leave ITEM out.")
    settlement = Settlement(
        student,
        number,
        None if outcome == NO_OUTCOME else InquiryOutcome(outcome),
        why,
        item or "",
        value,
        unanswered,
    )
    with session(request) as opened:
        before = [one for one in inquiries(opened.book.edits(student)) if one.number == number]
        revision = settle_inquiry(opened, settlement, allow_lower=allow_lower)
    state = "open again" if outcome == NO_OUTCOME else outcome
    print_revision(revision, f"Question {number} of {student} is {state}.")
    if outcome == NO_OUTCOME and before[0].target:
        _tell_kept_points(before[0].target)


def _tell_kept_points(target: str) -> None:
    """Print that taking a decision back leaves the points that it gave."""
    from grader.domain.formatting import printable

    kept = f"note: '{target}' keeps the points of the decision that was taken back: `grader marks set`."
    click.echo(printable(kept), err=True)
