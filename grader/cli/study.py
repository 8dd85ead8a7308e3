"""`grader study`: what a student's own choices are worth, in short trainings."""

import contextlib
import tempfile
from pathlib import Path

import click

from grader.cli.options import cores, device_option


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
    "--epochs", type=click.IntRange(1), help="Of each training. Default: the student's, at most 10."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for table and plot.")
@click.option("--jobs", type=click.IntRange(1), help="Trainings at once. Default: one per processor core.")
@device_option
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
def command(
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
    """Train SUBMISSION, a student's code file, with other values than the student's.

    One value is changed at a time, everything else stays. The trainings are short: compare the accuracies
    with each other, not with a grade. The code runs isolated, as in `grader grade`.
    Writes OUT/study.csv and OUT/study.png.

    \b
    Examples:
      grader study 400101204_Lab8_Homework.py --assignment vit_defects --data NEU-CLS.zip --out study
      grader study homework.py --assignment vit_defects --data NEU-CLS.zip --vary depth=2/4/8 --out study
    """
    from grader.cli.study_view import StudyView
    from grader.course.assignment_file import read_assignment
    from grader.course.locate import located_course
    from grader.domain.submission import Role
    from grader.files import atomic
    from grader.grading.gpu_slots import training_device, turns_on
    from grader.grading.hidden_splits import STUDY, hidden_splits
    from grader.grading.hosts import running_hosts
    from grader.grading.run import Run
    from grader.grading.value_study import studied, study, submission_file, wanted_values
    from grader.intake import submissions
    from grader.parser.client.parsed_program import parsed
    from grader.reports.plots.study_plot import study_table, write_study_plot

    wanted = wanted_values(vary)
    found_course = located_course(course)
    assignment = read_assignment(found_course.reference(assignment_id))
    code = [suffix for file in assignment.files if file.role is Role.CODE for suffix in file.suffixes]
    file = submission_file(path, code)
    splits = hidden_splits(found_course, assignment, data, lambda: STUDY)
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch, contextlib.ExitStack() as ends:
        hidden = tuple(folder.resolve() for folder in (file, out, Path(scratch)))
        submission = submissions(file, assignment, Path(scratch)).submissions[0]
        hosts = ends.enter_context(running_hosts(found_course, assignment, hidden=hidden, unofficial=False))
        program = parsed(hosts.parsers, file.name, file.read_bytes(), assignment)
        planned = study(program, wanted, epochs)
        view = ends.enter_context(StudyView(file, planned))
        where = training_device(device)
        turns = turns_on(where, assignment.limits.gpu_memory_mb)
        run = Run(found_course, assignment, hosts, splits, where, turns)
        runs = studied(run, splits.of(1), submission, planned, jobs=jobs or cores(), report=view.epoch)
    rows = view.rows(runs)
    out.mkdir(parents=True, exist_ok=True)
    atomic.write(out / "study.csv", study_table(rows).encode("utf-8"))
    view.result(rows, [out / "study.csv", write_study_plot(rows, out / "study.png")])
