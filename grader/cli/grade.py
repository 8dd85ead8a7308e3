"""`grader grade`: a submission, a folder of them, or an LMS download."""

import contextlib
import difflib
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.book import by_option, gradebook_option, lower_option, now, operator, told_catch_up
from grader.cli.options import cores, device_option, training_device
from grader.domain.errors import UsageError
from grader.domain.quoting import about_file

if TYPE_CHECKING:
    from grader.domain.assignment import Assignment
    from grader.domain.result import Result
    from grader.domain.submission import Submission
    from grader.gradebook import Gradebook
    from grader.grading.class_list import ClassList
    from grader.lms.roster import Roster
    from grader.reports.whole_class.class_overview import Overview
    from grader.results.download_accounts import Account
    from grader.sandbox.host_client import Host


@click.command("grade")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for the results.")
@click.option("--data", help="The data set's zip or folder, or `synthetic`. Needed unless --no-train.")
@click.option("--no-train", is_flag=True, help="Run the checks only; the training item is not run.")
@click.option("--jobs", type=click.IntRange(1), help="Submissions at once. Default: one per processor core.")
@device_option
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
@click.option(
    "--extensions",
    type=click.Path(path_type=Path),
    help="A CSV of single students' own deadlines: student_id, deadline.",
)
@click.option(
    "--roster",
    type=click.Path(path_type=Path),
    help="The list of the class, a CSV with a column student_id or as an LMS writes it: who is missing?",
)
@click.option(
    "--unofficial",
    is_flag=True,
    help="Accept a machine that isolates too little; every grade is stamped unofficial.",
)
@gradebook_option
@click.option(
    "--only",
    metavar="STUDENT",
    multiple=True,
    help="Only this student's submission; can be given several times. The others stay as they are.",
)
@click.option("--force", is_flag=True, help="Also run again what nothing has changed about.")
@by_option
@lower_option
def command(
    path: Path,
    assignment_id: str,
    out: Path,
    data: str | None,
    no_train: bool,
    jobs: int | None,
    device: str,
    course: Path | None,
    extensions: Path | None,
    roster: Path | None,
    unofficial: bool,
    gradebook: str | None,
    by: str | None,
    only: tuple[str, ...],
    force: bool,
    allow_lower: bool,
) -> None:
    """Grade PATH: a submission's file, a folder of submissions, or a zip from an LMS.

    Writes OUT/results.json, OUT/scores.csv, OUT/index.html (the class) and a report for each student. What
    was found out is kept in the gradebook, OUT/gradebook.sqlite, and later runs and marks are added to it.

    Whatever interrupts it, the same command goes on where it was: a submission is examined again only when
    it, the assignment, the grader or the images have changed. Where the same files give less than was told
    before, the earlier run goes on counting unless --allow-lower; where a later attempt does, a person is
    asked (`grader count`).

    \b
    Examples:
      grader grade download.zip --assignment vit_defects --data NEU-CLS.zip --out results
      grader grade homework.py --assignment vit_defects --no-train --out results
    """
    from grader.cli.live import live_display
    from grader.course.assignment_file import read_assignment
    from grader.course.dataset_file import cache_folder
    from grader.course.extensions import read_extensions
    from grader.course.locate import located_course
    from grader.domain.stage_time import stage_times
    from grader.gradebook import Gradebook
    from grader.grading.class_list import ClassList
    from grader.grading.class_run import graded
    from grader.grading.gpu_slots import turns_on
    from grader.grading.hidden_splits import hidden_splits
    from grader.grading.hosts import running_hosts, running_parsers
    from grader.grading.run import Run
    from grader.grading.team_members import mates
    from grader.grading.time_estimate import Rates, kind_of_work, planned
    from grader.lms.roster import read_roster
    from grader.results.catching_up import caught_up
    from grader.results.download_accounts import keep_account
    from grader.results.page_state import grading
    from grader.results.revision import digest

    found_course = located_course(course)
    assignment = read_assignment(found_course.reference(assignment_id))
    if data is None and not no_train:
        raise UsageError(
            "Grading trains each submission, so it needs images: --data PATH (the course's zip or folder), "
            "--data synthetic (to try things out), or --no-train (checks only)."
        )
    own_deadlines = read_extensions(extensions, assignment.deadline) if extensions else {}
    class_list = ClassList(read_roster(roster) if roster else None)
    who, book = operator(by), Gradebook(out, gradebook, assignment_id=assignment.id)
    book.require_writable()
    if assignment.id in book.assignments():  # a book that cannot be used is told before anything runs
        catch_up = caught_up(assignment, book, out, now)
        if catch_up is not None:
            told_catch_up(catch_up)
    started = time.monotonic()
    _warn_of_public_secret(found_course.secret_is_public, no_train or data == "synthetic")
    splits = None
    if not no_train and data is not None:
        splits = hidden_splits(found_course, assignment, data, book.class_salt)
    where, count = training_device("cpu" if no_train else device), jobs or cores()
    rates = Rates(cache_folder())
    work = kind_of_work(where, None if splits is None else splits.training_images)
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch, contextlib.ExitStack() as hosts_end:
        hidden = tuple(folder.resolve() for folder in (path, out, Path(scratch)))
        starting = running_parsers(found_course, hidden=hidden, unofficial=unofficial, views=True)
        parsers = hosts_end.enter_context(starting)
        uploaded, account = _taken_in(
            path, assignment, Path(scratch), parsers, own_deadlines, class_list, book, who
        )
        chosen = _chosen(uploaded, only)
        keep_account(book, out, account, who=who, when=now())  # whatever interrupts what follows
        click.echo("Starting (PyTorch and the checks are loaded once) ...", err=True)
        hosts = hosts_end.enter_context(
            running_hosts(found_course, assignment, hidden=hidden, unofficial=unofficial, parsers=parsers)
        )
        turns = turns_on(where, assignment.limits.gpu_memory_mb)
        run = Run(found_course, assignment, hosts, splits, where, turns)
        known_rates = rates.known(assignment.id, work)
        plan = planned(run, book, chosen, known_rates, jobs=count, force=force)
        try:
            with grading(out), live_display(plan, trains=splits is not None) as watch:
                results = graded(
                    run,
                    chosen,
                    out,
                    jobs=count,
                    clock=now,
                    watch=watch,
                    book=book,
                    who=who,
                    force=force,
                    allow_lower=allow_lower,
                )
        except KeyboardInterrupt:
            click.echo("What is done is kept: the same command goes on from there.", err=True)
            raise
    alone = mates(chosen)  # what a team handed in together was examined once
    graded_now = {one.evidence.student_id: one.known for one in results}
    firsts = {student: known for student, known in graded_now.items() if student in alone}
    examined = [(one.evidence, one.score) for one in results if firsts.get(one.evidence.student_id) is False]
    rates.keep(assignment.id, work, stage_times(evidence for evidence, _ in examined))
    written = {one.evidence.student_id: digest(one) for one in results if not one.known}
    del results, examined  # of a large class, nothing is held twice
    everybody, overview = _written(assignment, book, out, account, class_list.roster, who, written)
    _tell(overview, everybody, graded_now, firsts, out, time.monotonic() - started)


def _taken_in(
    path: Path,
    assignment: "Assignment",
    scratch: Path,
    parsers: "Host",
    own_deadlines: Mapping[str, datetime],
    class_list: "ClassList",
    book: "Gradebook",
    who: str,
) -> "tuple[Sequence[Submission], Account]":
    """What was handed in and the account of the files, which is told; the book learns whose uploads are."""
    from grader.domain.formatting import printable
    from grader.intake import Known, submissions, with_extensions
    from grader.lms.downloads import nameless
    from grader.parser.client.opened_files import ParserOpener
    from grader.results.download_accounts import Account
    from grader.results.owners import known_uploads, moved_edits

    known = Known(class_list.directory(), class_list.read, known_uploads(book))
    uploads = submissions(path, assignment, scratch, ParserOpener(parsers), known)
    uploads = with_extensions(uploads, own_deadlines)
    book.relist(moved_edits(uploads.moved, who=who, when=now()))
    for refused in uploads.unmatched:
        click.echo(printable(f"set aside: {about_file(refused.name, refused.reason)}"), err=True)
    for note in uploads.notes:
        click.echo(printable(f"note: {note}"), err=True)
    for one in uploads.submissions:
        if one.held:
            click.echo(printable(f"held: {one.origin.upload} ({one.student_id}): {one.held}"), err=True)
    account = Account.of(uploads, nameless(path.resolve().name))
    download = account.download
    click.echo(
        f"{download.matched + download.superseded + download.refused} files: {download.matched} matched, "
        f"{download.superseded} of earlier attempts, {download.refused} refused.",
        err=True,
    )
    return uploads.submissions, account


def _written(
    assignment: "Assignment",
    book: "Gradebook",
    out: Path,
    account: "Account",
    class_list: "Roster | None",
    who: str,
    written: Mapping[str, str],
) -> "tuple[Sequence[Result], Overview]":
    """Write the class's files: what the book has of everybody, who may not have been in this run.

    Args:
        written: The digests of what the reports of this run say; of the others, results.json says it.

    Returns:
        Everybody's results, and what the class came to.
    """
    from grader.domain.formatting import counted
    from grader.grading.class_list import with_list
    from grader.lms.matching import candidates
    from grader.reports.whole_class.set_aside import set_aside
    from grader.results.class_files import write_class
    from grader.results.download_accounts import keep_account, standing_downloads
    from grader.results.owners import remove_moved_pages
    from grader.results.page_state import note, writing
    from grader.results.revision import results_now, told_digests, write_reports

    with writing(out):
        snapshot = book.snapshot()
        everybody = results_now(assignment, snapshot)
        found = candidates((result.evidence, result.score) for result in everybody)
        listed = replace(account, download=with_list(account.download, class_list, found))
        keep_account(book, out, listed, who=who, when=now())
        # what else was added since makes the files stale, which the next command sees
        told = replace(snapshot.state, last_download=book.state().last_download)
        downloads = standing_downloads(book, out, snapshot)
        write_reports(assignment, book, out, everybody, now(), {**told_digests(out), **written})
        overview = write_class(assignment, everybody, out, now(), downloads)
        remove_moved_pages(out, snapshot)
        note(out, book, assignment.id, told)
    book.close()
    aside = set_aside(overview.download, overview.results)
    if aside.unused:
        click.echo(
            f"{counted(aside.total, 'file')} set aside: {aside.total - aside.unused} refused, "
            f"{aside.unused} matched and not used by the submission.",
            err=True,
        )
    if overview.absent is not None and overview.list_source:
        count, whole = overview.absent
        of_all = f"{count} of {whole}" if whole is not None else str(count)
        click.echo(f"{overview.list_source}: {of_all} students handed in nothing.", err=True)
    return everybody, overview


def _tell(
    overview: "Overview",
    everybody: "Sequence[Result]",
    graded_now: Collection[str],
    firsts: Mapping[str, bool],
    out: Path,
    seconds: float,
) -> None:
    """What came of this run.

    Args:
        graded_now: The students of the run.
        firsts: One student for each submission, and whether there was nothing to do for it.
    """
    from grader.cli.class_summary import print_results
    from grader.domain.formatting import printable

    shown = [one for one in everybody if one.score.student_id in graded_now]
    print_results(shown, overview, out, seconds, firsts)
    for one in shown:
        if one.score.lower:
            told = f"{one.score.student_id}: {one.score.lower.reason}"
            click.echo(printable(f"{told} `grader count` decides."), err=True)


def _chosen(found: "Sequence[Submission]", only: Sequence[str]) -> "Sequence[Submission]":
    """The submissions of the students that are asked for; all when nobody is.

    Raises:
        UsageError: Somebody who is asked for handed nothing in.
    """
    absent = [student for student in only if student not in {one.student_id for one in found}]
    if absent:
        near = difflib.get_close_matches(absent[0], [one.student_id for one in found], n=1, cutoff=0.5)
        advice = f"Did you mean {near[0]}?" if near else "The class page of an earlier run lists the ids."
        raise UsageError(f"--only {absent[0]}: there is no submission of that student. {advice}")
    return [one for one in found if one.student_id in only] if only else found


def _warn_of_public_secret(public: bool, harmless: bool) -> None:
    if public and not harmless:
        click.echo(
            "warning: the course's secret is still the one that it was handed out with, so students could "
            "work out the seeds of their trainings. Set `secret` in course.toml or GRADER_SECRET.",
            err=True,
        )
