"""A student's own choices, studied: short trainings with other values, a table of them and a plot."""

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.locate import located_course
from grader.domain.errors import UsageError
from grader.domain.evidence import Training
from grader.domain.submission import Role
from grader.files import atomic
from grader.files.own_modules import modules_beside
from grader.grading.gpu_slots import training_device, turns_on
from grader.grading.hidden_splits import STUDY, HiddenSplits, hidden_data
from grader.grading.hosts import running_hosts
from grader.grading.run import Run
from grader.grading.value_study import Choice, Study, StudyRun, studied, study, submission_file, wanted_values
from grader.intake import submissions
from grader.parser.client.parsed_program import parsed
from grader.reports.plots.study_plot import study_table, write_study_plot
from grader.training import EpochReport

TABLE, PLOT = "study.csv", "study.png"
StudyRow = tuple[str, str, bool, Training]
"""(field, value, whether it is the student's own, the training)."""
EpochWatcher = Callable[[Choice | None, EpochReport], None]
StudyWatcher = Callable[[Path, Study], contextlib.AbstractContextManager[EpochWatcher]]
"""(file, what is going to be trained) -> for as long as it lasts, who is told each epoch of each training."""


@dataclass(frozen=True)
class StudyRequest:
    """A study that is wanted.

    Attributes:
        path: The student's code file.
        data: The data set's zip or folder, or `synthetic`.
        out: The folder for table and plot.
        vary: What to vary, one at a time, with values if wanted: `lr=0.001/0.003,depth`.
        epochs: Of each training; None: the student's, but no more than ten.
        jobs: Trainings at once.
        device: `cpu`, `cuda`, or `auto`, which takes a GPU where there is one.
        course: The course's folder; None: found upward from the working directory.
    """

    path: Path
    assignment_id: str
    data: str
    out: Path
    vary: str
    epochs: int | None = None
    jobs: int = 1
    device: str = "auto"
    course: Path | None = None


@dataclass(frozen=True)
class SubmissionStudy:
    """What a study came to.

    Attributes:
        rows: By field and value, the student's own among them.
        files: What was written.
    """

    rows: Sequence[StudyRow]
    files: tuple[Path, ...]


def study_submission(request: StudyRequest, *, watch: StudyWatcher) -> SubmissionStudy:
    """Train a student's file with other values than the student's, in isolation.

    Raises:
        UsageError: There is no such file, data or value, or the folder cannot be written.
        SubmissionError: The file cannot be read, or holds nothing that could be varied.
        CourseError: A file of the course is malformed.
        SandboxError: The machine gives too little isolation.
    """
    wanted = wanted_values(request.vary)
    course = located_course(request.course)
    assignment = read_assignment(course.reference(request.assignment_id))
    code = [suffix for file in assignment.files if file.role == Role.CODE for suffix in file.suffixes]
    file = submission_file(request.path, code)
    splits = hidden_data(course, assignment, request.data, lambda: STUDY)
    if not isinstance(splits, HiddenSplits) or assignment.measures[0].call is not None:
        raise UsageError(
            f"{assignment.id} is trained by a call, whose values assignment.toml states: there is nothing of "
            "the student's to vary. Change them there."
        )
    with tempfile.TemporaryDirectory(prefix="grader-") as scratch, contextlib.ExitStack() as ends:
        hidden = tuple(folder.resolve() for folder in (file, request.out, Path(scratch)))
        submission = submissions(file, assignment, Path(scratch)).submissions[0]
        hosts = ends.enter_context(running_hosts(course, assignment, hidden=hidden, unofficial=False))
        program = parsed(
            hosts.parsers, file.name, file.read_bytes(), assignment, modules=modules_beside(file)
        )
        planned = study(program, wanted, request.epochs)
        report = ends.enter_context(watch(file, planned))
        device = training_device(request.device)
        turns = turns_on(device, assignment.limits.gpu_memory_mb)
        run = Run(course, assignment, hosts, splits, device, turns)
        runs = studied(run, splits.of(1), submission, planned, jobs=request.jobs, report=report)
    rows = study_rows(planned, runs)
    atomic.make_folder(request.out)
    atomic.write(request.out / TABLE, study_table(rows).encode("utf-8"))
    return SubmissionStudy(rows, (request.out / TABLE, write_study_plot(rows, request.out / PLOT)))


def study_rows(planned: Study, runs: Sequence[StudyRun]) -> list[StudyRow]:
    """A study by fields, with the student's own value in each."""
    own = {value.name: value.value for value in planned.program.tuned}
    base = next(run.training for run in runs if run.choice is None)
    rows: list[StudyRow] = []
    for field in dict.fromkeys(choice.field for choice in planned.choices):
        rows.append((field, own[field], True, base))
        rows += [
            (field, run.choice.value, False, run.training)
            for run in runs
            if run.choice is not None and run.choice.field == field
        ]
    return sorted(rows, key=lambda row: (row[0], float(row[1])))
