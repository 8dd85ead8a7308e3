"""The commands that record what a person decides about submissions, and score a class again.

They are `grader accept`, `claim`, `count`, `owner`, `received`, `rule`, `waive` and `regrade`. Each reads
its arguments, opens the session of a class, hands the decision to `grader.decisions`, and prints what
changed. Whether a decision is allowed, and what it does to a grade, is never decided here.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import decision_options, print_revision, session
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.decisions.upload_owner import NewOwner
    from grader.results.revision import Revision
    from grader.results.session import SessionRequest


NO_FILE = "none"


@click.command("accept")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("file", metavar="FILE")
@click.option("--why", required=True, help="The reason: the student reads it.")
@decision_options
def accept_command(
    request: "SessionRequest", student_id: str, file: str, why: str, allow_lower: bool
) -> None:
    """Accept the set-aside FILE as the report of STUDENT in the results folder OUT.

    FILE is its name on the class page and in the report (`report.docx`); `none` takes the decision back. The
    report is then no longer missing, and people mark it like any other. It counts as long as the submission
    that counts has that file.

    \b
    Examples:
      grader accept results 400101215 400101215_Lab8_Homework.docx --why "Word is fine this once."
      grader accept results 400101215 none --why "It is another course's report."
    """

    from grader.decisions.corrections import accept_file

    with session(request) as opened:
        accepted = None if file == NO_FILE else file
        revision = accept_file(opened, student_id, accepted, why=why, allow_lower=allow_lower)
    done = f"{file} counts as the report of {student_id}."
    if accepted is None:
        done = f"No file that was set aside counts as the report of {student_id}."
    print_revision(revision, done)


# --- claim -----------------------------------------------------------------------------------------------


@click.command("claim")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("accuracy", metavar="ACCURACY")
@click.option("--why", required=True, help="Where it is written: `page 3 of the report`.")
@decision_options
def claim_command(
    request: "SessionRequest", student_id: str, accuracy: str, why: str, allow_lower: bool
) -> None:
    """Record the test ACCURACY that STUDENT claims, in percent; `none` takes back an earlier entry.

    The grader reads it from the outputs of the notebook, or else from the text of the report. A scan has no
    text, and a sentence may be misread. If the measured accuracy is more than 5 points lower and points are
    at stake, a person decides.

    \b
    Examples:
      grader claim results 400101204 83.5 --why "page 3 of the report"
      grader claim results 400101204 none --why "it was about another model"
    """

    from grader.decisions.corrections import record_claim, share_in

    share = share_in(accuracy)
    with session(request) as opened:
        revision = record_claim(opened, student_id, share, why=why, allow_lower=allow_lower)
    done = "is no longer claimed" if share is None else "is claimed"
    print_revision(revision, f"{accuracy} {done} by {student_id}.")


# --- count -----------------------------------------------------------------------------------------------


@click.command("count")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("number", metavar="RUN")
@click.option("--why", required=True, help="The reason, for the record.")
@decision_options
def count_command(
    request: "SessionRequest", student_id: str, number: str, why: str, allow_lower: bool
) -> None:
    """Choose which RUN of STUDENT counts in the results folder OUT: a number of its history, or `latest`.

    By default, the latest run counts. If the same files earned less than was released before, the earlier run
    still counts. If a later attempt earned less, a person decides. Nothing runs again. A chosen run counts
    until the student hands in something new.

    \b
    Examples:
      grader count results 400101204 latest --why "The last attempt counts, as announced."
      grader count results 400101204 1 --why "The second upload was another course's homework."
    """

    from grader.decisions.corrections import choose_run, run_number_in

    wanted = run_number_in(number)
    with session(request) as opened:
        chosen = choose_run(opened, student_id, wanted, why=why, allow_lower=allow_lower)
    print_revision(chosen.revision, f"{'The latest run' if wanted is None else f'Run {number}'} counts.")


# --- owner -----------------------------------------------------------------------------------------------


NO_OWNER = "none"


@click.command("owner")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("upload")
@click.argument("student_id", metavar="STUDENT")
@click.option("--why", required=True, help="How you know, for the record.")
@click.option("--instead", is_flag=True, help="It replaces the submission that STUDENT already has.")
@decision_options
def owner_command(
    request: "SessionRequest", upload: str, student_id: str, why: str, instead: bool, allow_lower: bool
) -> None:
    """Record that UPLOAD in the results folder OUT is the submission of STUDENT.

    UPLOAD is the id under which it is listed (`moodle-1234525`), or its name in the download. The queue of
    the class page shows both. STUDENT is the student's id; `none` takes an earlier assignment back, and then
    its points reach nobody.

    From then on, its points, marks and report are that student's, even when the same download is graded
    again. If the student has another submission, --instead means that the other one no longer counts. Nothing
    runs again.

    \b
    Examples:
      grader owner results moodle-1234525 400101325 --why "By the list of the course."
      grader owner results moodle-1234524 400101324 --why "A slip of the pen, he says." --by ta1
      grader owner results 400101325 none --why "She has not handed in anything."
    """

    from grader.decisions.upload_owner import decide_owner

    with session(request) as opened:
        owner = None if student_id == NO_OWNER else student_id
        new_owner = decide_owner(
            opened, upload, owner, why=why, replaces_current=instead, allow_lower=allow_lower
        )
    _tell_owner(new_owner.owner, new_owner.revision)


def _tell_owner(owner: "NewOwner", revision: "Revision") -> None:
    from grader.domain.formatting import printable

    upload = owner.upload.origin.upload or owner.upload.student_id
    displaced = owner.displaced
    if displaced is not None:
        listed = next((edit.listed_as for edit in owner.edits if edit.student_id == displaced.row), "")
        what = f"is listed as {listed}, and nobody knows whose it is" if listed else "no longer counts"
        click.echo(printable(f"{displaced.origin.upload}, which was {owner.student_id}'s, {what}."))
    if not owner.edits:
        done = "So it is already."
    elif owner.student_id == owner.upload.origin.listed_as:
        done = f"{upload}: nobody knows whose it is. It is listed as {owner.student_id}."
    else:
        done = f"{upload} is {owner.student_id}'s."
    print_revision(revision, done)


# --- received --------------------------------------------------------------------------------------------


@click.command("received")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("student_id", metavar="STUDENT")
@click.argument("moment", metavar="WHEN")
@click.option("--why", required=True, help="How you know: the student reads it.")
@decision_options
def received_command(
    request: "SessionRequest", student_id: str, moment: str, why: str, allow_lower: bool
) -> None:
    """Record WHEN the submission of STUDENT in the results folder OUT arrived, for the rule on late work.

    WHEN is a date and time with its zone, `in-time`, or `none`, which takes back an earlier entry. Canvas
    marks submissions as late without saying by how much; a submission by mail is in no LMS. The entry applies
    to the files that were graded. For anything handed in later, the LMS's time counts.

    \b
    Examples:
      grader received results 400101204 2026-01-31T23:40+03:30 --why "SpeedGrader says so."
      grader received results 400101205 in-time --why "Handed in by mail, on paper."
    """

    from grader.decisions.corrections import IN_TIME, NO_TIME, moment_in, record_in_time, record_received

    when = None if moment in (IN_TIME, NO_TIME) else moment_in(moment)
    with session(request) as opened:
        if moment == IN_TIME:
            arrival = record_in_time(opened, student_id, why=why, allow_lower=allow_lower)
        else:
            arrival = record_received(opened, student_id, when, why=why, allow_lower=allow_lower)
    nothing = "The assignment has no deadline, so nothing follows from it."
    print_revision(arrival.revision, f"{student_id}: {arrival.late.reason if arrival.late else nothing}")


# --- rule ------------------------------------------------------------------------------------------------


@click.command("rule")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("students", metavar="[STUDENT]...", nargs=-1)
@click.option("--missing", multiple=True, metavar="STUDENT", help="The same as STUDENT.")
@click.option(
    "--all",
    "everybody",
    is_flag=True,
    help="All whose total is withheld for a missing file, or who were refused.",
)
@click.option("--lift", is_flag=True, help="The total counts anyway.")
@click.option("--why", required=True, help="The reason: the student reads it.")
@decision_options
def rule_command(
    request: "SessionRequest",
    students: tuple[str, ...],
    missing: tuple[str, ...],
    everybody: bool,
    lift: bool,
    why: str,
    allow_lower: bool,
) -> None:
    """Decide about each STUDENT of the results folder OUT whose submission lacks something.

    If a file is missing, nothing could be graded, or nothing was handed in, there is no total until you
    decide. With the rule it is 0. With --lift the total counts anyway: items that could not be judged without
    code give no points, and items that people mark count. A student who handed in nothing must be on a list
    of the class, or listed by the LMS. After an oral check that was not passed, the same decides about a
    complete submission; --all leaves these out.

    The rule applies to what has been handed in so far: a later attempt is graded as usual. The latest
    decision counts. Every decision is recorded with who made it, when and why.

    \b
    Examples:
      grader rule results 400101215 --why "No report by the deadline."
      grader rule results 400101216 --lift --why "Its notebook does not open; the report counts."
      grader rule results 400101362 --why "Nothing by the deadline."
      grader rule results --all --why "One missing file means no grade."
    """

    from grader.decisions.last_word import rule

    named = (*missing, *students)
    if bool(named) == everybody:
        raise UsageError("Say whom the rule is about: one or more STUDENTs, or --all.")
    with session(request) as opened:
        word = rule(opened, named or None, why=why, lift=lift, allow_lower=allow_lower)
    count = len(word.students)
    done = f"What there is counts for {count}" if lift else f"0 points for {count}"
    print_revision(word.revision, f"{done} of the class.")


# --- waive -----------------------------------------------------------------------------------------------


@click.command("waive")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("check")
@click.option("--why", required=True, help="The reason: students and colleagues read it.")
@click.option("--undo", is_flag=True, help="Take the waiver back: the check counts again.")
@decision_options
def waive_command(request: "SessionRequest", check: str, why: str, undo: bool, allow_lower: bool) -> None:
    """Count CHECK as passed for the whole class of the results folder OUT: the check was wrong.

    No student's code runs. The waiver is recorded with who made it, when and why. It also applies to later
    submissions.

    \b
    Examples:
      grader waive results vit_adds_positions --why "The handout did not ask for it."
      grader waive results vit_adds_positions --undo --allow-lower --why "It did, on page 2."
    """
    from grader.decisions.corrections import waive_check

    with session(request) as opened:
        waived = waive_check(opened, check, why=why, undo=undo, allow_lower=allow_lower)
    done = "counts again" if undo else "counts as passed for the whole class"
    print_revision(waived.revision, f"'{waived.check}' {done}.")


# --- regrade ---------------------------------------------------------------------------------------------


@click.command("regrade")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--extensions",
    type=click.Path(path_type=Path),
    help="A CSV of single students' own deadlines, granted afterwards: student_id, deadline.",
)
@decision_options
def regrade_command(request: "SessionRequest", extensions: Path | None, allow_lower: bool) -> None:
    """Score the evidence in the results folder OUT again, with the current rubric.

    No student's code runs. All reports are written again, and every total that changed is printed. Totals
    that were released never fall without --allow-lower.

    Extensions are recorded as decisions, with who made them and when. If a deadline was given both when
    grading and here, the later one counts.

    \b
    Examples:
      grader regrade results --assignment vit_defects
      grader regrade results --extensions extensions.csv
    """

    from grader.course.extensions import read_extensions
    from grader.decisions.corrections import regrade
    from grader.domain.formatting import printable

    with session(request) as opened:
        deadlines = read_extensions(extensions, opened.assignment.deadline) if extensions else None
        source = extensions.name if extensions else ""
        done = regrade(opened, extensions=deadlines, source=source, allow_lower=allow_lower)
    for student_id in done.unknown:
        click.echo(printable(f"note: {student_id}: has an extension, and no result."), err=True)
    sentence = f"{len(done.revision.results)} submissions scored again."
    print_revision(
        done.revision, f"{sentence} New extensions: {done.extensions}." if extensions else sentence
    )
