"""The commands that work on submissions: `grader grade`, `study` and `similar`.

They grade a class or a single submission, train a submission with other values, and compare the
submissions of a class. Each makes a request from its options, and shows the progress of the work and where
the results are. Grades, trainings and comparisons are made in `grader.grading`, never here.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import (
    by_option,
    cores,
    device_option,
    gradebook_option,
    lower_option,
    now,
    operator,
    print_catch_up,
)
from grader.domain.errors import UsageError
from grader.domain.formatting import about_file

if TYPE_CHECKING:
    from grader.grading.concurrent_work import Watcher
    from grader.grading.examiner import Machines
    from grader.grading.grade_class import ClassResult, TakenIn
    from grader.grading.time_estimate import Workload
    from grader.results.class_pages import CatchUp


@click.command("grade")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for the results.")
@click.option(
    "--data",
    help="The data set's zip or folder, or `synthetic`. Needed if accuracy counts, unless --no-train, or if "
    "the data set makes its data.",
)
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
    help="The class list, which shows who is missing: a CSV with a column student_id, or an LMS's list.",
)
@click.option(
    "--groups",
    type=click.Path(path_type=Path),
    help="Who works together: a CSV with group and student_id, where one member hands in for all. Default: "
    "the one of [people] in course.toml.",
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
    help="Only this student's submission; may be repeated. The others stay unchanged.",
)
@click.option("--force", is_flag=True, help="Also run again what has not changed.")
@click.option(
    "--cluster",
    metavar="WHERE",
    help="Have nodes examine the submissions: `local`, `tls://SCHEDULER:PORT`, `ssh:HOSTS.txt` or "
    "`slurm:nodes=5,...`: see docs/cluster.md.",
)
@click.option("--dry-run", is_flag=True, help="With --cluster slurm: print the job script, and do nothing.")
@by_option
@lower_option
def grade_command(
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
    groups: Path | None,
    unofficial: bool,
    gradebook: str | None,
    by: str | None,
    only: tuple[str, ...],
    force: bool,
    cluster: str | None,
    dry_run: bool,
    allow_lower: bool,
) -> None:
    """Grade PATH: a submission's file, a folder of submissions, or a zip from an LMS.

    Writes OUT/results.json, OUT/scores.csv, OUT/index.html (the class) and a report for each student. The
    gradebook, OUT/gradebook.sqlite, keeps all findings; later runs and marks are added to it.

    After an interruption, the same command resumes. A submission is examined again only if it, the
    assignment, the grader or the images have changed. If the same files earn less than was released before,
    the earlier run still counts, unless you add --allow-lower. If a later attempt earns less, a person
    decides (`grader count`).

    \b
    Examples:
      grader grade download.zip --assignment vit_defects --data NEU-CLS.zip --out results
      grader grade homework.py --assignment vit_defects --no-train --out results
    """
    from grader.course.dataset_file import SYNTHETIC
    from grader.course.locate import located_course
    from grader.grading.grade_class import THIS_MACHINE, GradeRequest, grade_class
    from grader.grading.run_recorder import recorded

    if dry_run:
        _print_job_script(cluster)
        return

    assignment = located_course(course).assignment(assignment_id)
    if assignment.data is None and data is not None:
        click.echo(f"note: {assignment_id} has no data set, so --data is not used.", err=True)
        data = None
    if assignment.data is not None and assignment.data.is_made and data is None and not no_train:
        data = SYNTHETIC
    if assignment.needs_data and data is None and not no_train:
        raise UsageError(
            "Grading trains each submission, so it needs data: --data PATH (the course's zip or folder), "
            "--data synthetic (to try things out), or --no-train (checks only)."
        )
    request = GradeRequest(
        path=path,
        assignment_id=assignment_id,
        out=out,
        who=operator(by),
        data=None if no_train else data,
        jobs=jobs or cores(),
        device=device,
        course=course,
        extensions=extensions,
        roster=roster,
        groups=groups,
        gradebook=gradebook,
        only=only,
        force=force,
        unofficial=unofficial,
        allow_lower=allow_lower,
    )
    machines = _cluster_machines(cluster, request.jobs) if cluster else THIS_MACHINE
    with recorded(request, _GradingDisplay(), now) as watch:
        done = grade_class(request, clock=now, watch=watch, machines=machines)
    _tell_graded(done, out)


def _cluster_machines(text: str, jobs: int) -> "Machines":
    """The nodes that `--cluster` names.

    Raises:
        UsageError: It names none, or the packages for it are missing.
    """
    from grader.cluster.where import where

    place = where(text)
    _require_cluster()
    from grader.cluster.cluster_grading import ClusterMachines

    return ClusterMachines(place, jobs, lambda sentence: click.echo(f"node {sentence}", err=True))


def _print_job_script(text: str | None) -> None:
    """Print what `--cluster slurm` would submit."""
    from grader.cluster.where import SlurmJobs, where

    place = where(text) if text else None
    if not isinstance(place, SlurmJobs):
        raise UsageError("--dry-run prints the job script of --cluster slurm, and of nothing else.")
    _require_cluster()
    from grader.cluster.slurm_nodes import slurm_script

    click.echo(slurm_script(place))


def _require_cluster() -> None:
    """Refuse to go on without the packages of the extra `cluster`.

    Raises:
        UsageError: One is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in ("distributed", "dask_jobqueue", "cryptography") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"--cluster needs packages that are not installed here ({', '.join(missing)}): "
            "pip install 'vit-grader[cluster]'"
        )


class _GradingDisplay:
    """Shows the progress of grading a class on the terminal."""

    def secret_is_public(self) -> None:
        """The course's secret is still the one that it was handed out with."""
        click.echo(
            "warning: the course's secret is still the one that it was handed out with, so students could "
            "work out the seeds of their training runs. Set `secret` in course.toml or GRADER_SECRET.",
            err=True,
        )

    def taken_in(self, taken_in: "TakenIn") -> None:
        """The submissions were read from the path."""
        from grader.domain.formatting import printable

        for refused in taken_in.uploads.unmatched:
            click.echo(printable(f"set aside: {about_file(refused.name, refused.reason)}"), err=True)
        for note in taken_in.uploads.notes:
            click.echo(printable(f"note: {note}"), err=True)
        for submission in taken_in.uploads.submissions:
            if submission.held:
                upload = f"{submission.origin.upload} ({submission.student_id})"
                click.echo(printable(f"held: {upload}: {submission.held}"), err=True)
        download = taken_in.download
        click.echo(
            f"{download.matched + download.superseded + download.refused} files: {download.matched} matched, "
            f"{download.superseded} of earlier attempts, {download.refused} refused.",
            err=True,
        )

    def starting(self) -> None:
        """PyTorch and the checks are loaded."""
        click.echo("Starting (PyTorch and the checks are loaded once) ...", err=True)

    @contextlib.contextmanager
    def grading(self, workload: "Workload", *, trains: bool) -> "Iterator[Watcher]":
        """Submissions are examined."""
        from grader.cli.class_view import live_display

        try:
            with live_display(workload, trains=trains) as watch:
                yield watch
        except KeyboardInterrupt:
            click.echo("What is done is kept: the same command continues from there.", err=True)
            raise


def _tell_graded(graded: "ClassResult", out: Path) -> None:
    """Print the results of the run."""
    from grader.cli.class_view import MOST_ROWS, print_results
    from grader.domain.formatting import counted, printable
    from grader.reports.whole_class.class_overview import set_aside

    overview, shown = graded.overview, graded.results_of_run
    aside = set_aside(overview.download, overview.results)
    if aside.unused:
        click.echo(
            f"{counted(aside.total, 'file')} set aside: {aside.total - aside.unused} refused, "
            f"{aside.unused} matched and not used by the submission.",
            err=True,
        )
    if overview.absent is not None and overview.list_source:
        count, students = overview.absent
        of_all = f"{count} of {students}" if students is not None else str(count)
        click.echo(f"{overview.list_source}: {of_all} students handed in nothing.", err=True)
    print_results(shown, overview, out, graded.seconds, graded.submissions)
    if graded.changes:
        for change in graded.changes[:MOST_ROWS]:
            click.echo(printable(change.in_words))
        count = len(graded.changes)
        rest = f" {count - MOST_ROWS} more are in `grader history`." if count > MOST_ROWS else ""
        click.echo(f"{counted(count, 'earlier total')} changed.{rest}")
    for result in shown:
        if result.score.lower:
            reason = f"{result.score.student_id}: {result.score.lower.reason}"
            click.echo(printable(f"{reason} `grader count` decides."), err=True)


# --- study -----------------------------------------------------------------------------------------------


@click.command("study")
@click.argument("path", metavar="SUBMISSION", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--data", required=True, help="The data set's zip or folder, or `synthetic`.")
@click.option(
    "--vary",
    default="lr,depth,heads,patch_size",
    show_default=True,
    metavar="NAMES",
    help="What to vary, one at a time; with values if you like: lr=0.001/0.003,depth.",
)
@click.option(
    "--epochs",
    type=click.IntRange(1),
    help="Epochs of each training run. Default: the student's, at most 10.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for table and plot.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Training runs at once. Default: one per processor core."
)
@device_option
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
def study_command(
    path: Path,
    assignment_id: str,
    data: str,
    vary: str,
    epochs: int | None,
    out: Path,
    jobs: int | None,
    device: str,
    course: Path | None,
) -> None:
    """Train SUBMISSION, a student's code file, with different values.

    One value is changed at a time; everything else stays the same. The training runs are short: compare the
    accuracies with each other, not with a grade. The code runs isolated, as in `grader grade`. Writes
    OUT/study.csv and OUT/study.png.

    \b
    Examples:
      grader study 400101204_Lab8_Homework.py --assignment vit_defects --data NEU-CLS.zip --out study
      grader study homework.py --assignment vit_defects --data NEU-CLS.zip --vary depth=2/4/8 --out study
    """
    from grader.cli.study_view import StudyView
    from grader.grading.submission_study import StudyRequest, study_submission

    view = StudyView()
    request = StudyRequest(
        path=path,
        assignment_id=assignment_id,
        data=data,
        out=out,
        vary=vary,
        epochs=epochs,
        jobs=jobs or cores(),
        device=device,
        course=course,
    )
    done = study_submission(request, watch=view.progress)
    view.result(done)


# --- similar ---------------------------------------------------------------------------------------------


EVERY_SUBMISSION, EVERY_PAIR = 20, 2000  # between two lines of progress


@click.command("similar")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for page and table.")
@click.option(
    "--before",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An earlier class's submissions, or a file of --keep, compared with this one's.",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A new .json for later terms: fingerprints of the code, without ids and without the work.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.05, 1.0),
    help="The smallest shared part of a student's own code at which a pair is listed. Default: 0.5.",
)
@click.option(
    "--groups",
    type=click.Path(path_type=Path),
    help="Who works together, and is not compared: a CSV with group and student_id. Default: [people] groups "
    "of course.toml.",
)
@click.option("--jobs", type=click.IntRange(1), help="Files read at once. Default: one per processor core.")
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
@click.option("--unofficial", is_flag=True, help="Accept a machine that isolates too little.")
@gradebook_option
def similar_command(
    path: Path,
    assignment_id: str,
    out: Path,
    before: Path | None,
    keep: Path | None,
    threshold: float | None,
    groups: Path | None,
    jobs: int | None,
    course: Path | None,
    unofficial: bool,
    gradebook: str | None,
) -> None:
    """Compare the submissions in PATH: a folder of submissions, or a zip from an LMS.

    It compares the students' own code (without what was handed out, whatever the names and the order), the
    checkpoints and the figures. Nothing is executed. The result is evidence for a person and changes no
    grade. Writes OUT/similarity.html, OUT/similarity.csv and OUT/similarity.json. If OUT holds the results of
    the class, the class page also lists the pairs. Students' reports do not mention it.

    \b
    Examples:
      grader similar download.zip --assignment vit_defects --out results
      grader similar download.zip --assignment vit_defects --before last_year.zip --out results
      grader similar download.zip --assignment vit_defects --out results --keep prints-2026.json
    """
    from grader.domain.formatting import counted, printable
    from grader.grading.comparison import ComparisonRequest, compare_class
    from grader.similarity.compared_pairs import THRESHOLD

    request = ComparisonRequest(
        path=path,
        assignment_id=assignment_id,
        out=out,
        before=before,
        keep=keep,
        threshold=threshold or THRESHOLD,
        jobs=jobs or cores(),
        course=course,
        unofficial=unofficial,
        gradebook=gradebook,
        groups=groups,
    )
    done = compare_class(request, clock=now, watch=_ComparisonDisplay())
    for student, sentence in done.comparison.left_out:
        click.echo(printable(f"{student.student_id}: {sentence}"), err=True)
    click.echo(f"{counted(len(done.comparison.pairs), 'pair')} to look at: {done.page}")


class _ComparisonDisplay:
    """Shows the progress of a comparison on the terminal."""

    def taken_in(self, notes: Sequence[str], submissions: int) -> None:
        """The submissions have been read from the path."""
        from grader.domain.formatting import counted, printable

        for note in notes:
            click.echo(printable(f"note: {note}"), err=True)
        click.echo(f"Reading {counted(submissions, 'submission')} ...", err=True)

    def read(self, done: int, total: int) -> None:
        """So many submissions were read."""
        _say_now_and_then(done, total, "submissions read", EVERY_SUBMISSION)

    def compared(self, done: int, total: int) -> None:
        """So many pairs were compared."""
        _say_now_and_then(done, total, "pairs compared", EVERY_PAIR)

    def caught_up(self, catch_up: "CatchUp") -> None:
        """Files of the class showed an earlier state of the gradebook, and were written again."""
        print_catch_up(catch_up)

    def rubric_changed(self) -> None:
        """The class page is not written again."""
        click.echo(
            "note: the rubric has changed since then. `grader regrade` writes the class page again.", err=True
        )


def _say_now_and_then(done: int, total: int, what: str, every: int) -> None:
    if done % every == 0 or done == total:
        click.echo(f"{done} of {total} {what}", err=True)
