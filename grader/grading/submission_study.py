"""Studies a student's own choices: short trainings with other values, a table and a plot.

It finds the values that a student chose and proposes others around them. It has the program trained for a
few epochs with each, one value changed at a time, and writes the table and the plot. They are for people to
look at: it never decides about points, and nothing of it gets into the gradebook.
"""

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.analysis.rewriting import Rewritten, rewritten
from grader.course.assignment_file import read_assignment
from grader.course.locate import located_course
from grader.domain.analyzed_program import Program, TunedValue
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.evidence import Training
from grader.domain.submission import Role, Submission
from grader.files import atomic
from grader.files.file_names import modules_beside
from grader.grading.concurrent_work import side_by_side
from grader.grading.devices import device_slots, training_device
from grader.grading.hidden_splits import STUDY, HiddenSplits, hidden_data
from grader.grading.run import Run, running_hosts
from grader.grading.submission_draws import draws_of
from grader.grading.training_stage import one_training
from grader.intake import submissions
from grader.kit.splits import Splits
from grader.parser.client.parsed_files import parsed_program
from grader.reports.measured_words import MeasuredWords, measured_words
from grader.reports.plots.training_plots import study_table, write_study_plot
from grader.training import EpochReport

SHORT_NAMES = {"lr": "learning_rate", "wd": "weight_decay", "batch": "batch_size"}
EPOCHS = 10
STEPS = {"learning_rate": (1 / 3, 3), "weight_decay": (1 / 10, 10)}  # times the student's value
SHARES = {"dropout", "emb_dropout", "label_smoothing"}
MOST_RUNS = 60


@dataclass(frozen=True)
class Choice:
    """One value of one field.

    Attributes:
        field: `learning_rate`, `depth`, ...
        value: As it is written.
    """

    field: str
    value: str


@dataclass(frozen=True)
class StudyRun:
    """The result of a training with another value; `choice` is None for the student's own values."""

    choice: Choice | None
    training: Training


@dataclass(frozen=True)
class Study:
    """The trainings to run.

    Attributes:
        epochs: Of each training.
        choices: What is changed, one at a time; the student's own values come before all of them.
        left_out: Sentences: what cannot be varied, and why.
    """

    program: Program
    epochs: int
    choices: tuple[Choice, ...]
    left_out: tuple[str, ...] = ()


def wanted_values(text: str) -> dict[str, tuple[str, ...]]:
    """The values that `--vary` asks for: `lr,depth=2/8` is {learning_rate: (), depth: ("2", "8")}.

    Raises:
        UsageError: It is written otherwise.
    """
    values_by_field: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        name, _, listed = part.strip().partition("=")
        chosen = tuple(value.strip() for value in listed.split("/")) if listed else ()
        if not name or not all(map(_is_number, chosen)):
            raise UsageError(f"--vary {text}: expected names, with values if you like: lr,depth=2/8,heads")
        values_by_field[SHORT_NAMES.get(name, name)] = chosen
    return values_by_field


def study(program: Program, values_by_field: Mapping[str, tuple[str, ...]], epochs: int | None) -> Study:
    """The trainings to run.

    Args:
        program: The student's.
        values_by_field: Field -> values; where there are none, they are chosen around the student's.
        epochs: Of each training; by default the student's, at most 10.

    Raises:
        UsageError: None of the values can be varied, or it would take too many trainings.
    """
    literals = {value.name: value for value in program.tuned if value.written is not None}
    left_out: list[str] = []
    choices: list[Choice] = []
    for field, values in values_by_field.items():
        own_value = literals.get(field)
        if own_value is None:
            left_out.append(f"`{field}` cannot be varied: the source does not write it as a number.")
            continue
        alternatives = values or _around(own_value, literals)
        choices += [Choice(field, value) for value in alternatives if float(value) != float(own_value.value)]
    if not choices:
        raise UsageError(" ".join(left_out) or "There is nothing to vary. Name values: --vary depth=2/8")
    if len(choices) >= MOST_RUNS:
        raise UsageError(f"That is {len(choices)} trainings; at most {MOST_RUNS} are allowed. Vary less.")
    own_epochs = literals.get("epochs")
    if own_epochs is None:
        left_out.append("The number of epochs is not written as a number: all of them are trained.")
        return Study(program, 0, tuple(choices), tuple(left_out))
    count = epochs or min(int(own_epochs.value), EPOCHS)
    return Study(program, count, tuple(choices), tuple(left_out))


def studied(
    run: Run,
    splits: Splits,
    submission: Submission,
    planned: Study,
    *,
    jobs: int,
    report: Callable[[Choice | None, EpochReport], None] = lambda choice, epoch: None,
) -> list[StudyRun]:
    """Train the student's own values, then each choice, in isolation.

    Args:
        splits: The images.
        submission: Whose seeds are used: they are the same in all trainings.
        jobs: How many at once.
        report: Called with each epoch of each training.

    Returns:
        The results in the order of the study.
    """
    every: list[Choice | None] = [None, *planned.choices]

    def trained(choice: Choice | None) -> StudyRun:
        source = _source(planned, choice)
        program = parsed_program(
            run.hosts.parsers, planned.program.file, source.code, run.assignment, modules=source.modules
        )
        training = one_training(run, splits, program, submission, lambda epoch: report(choice, epoch))
        return StudyRun(choice, training)

    return side_by_side(trained, every, jobs)


def _source(planned: Study, choice: Choice | None) -> Rewritten:
    """The student's source with the study's epochs and the choice in it."""
    changes = {}
    for value in planned.program.tuned:
        if value.written is None:
            continue
        if choice is not None and value.name == choice.field:
            changes[value.written] = choice.value
        elif value.name == "epochs" and planned.epochs:
            changes[value.written] = str(planned.epochs)
    if planned.program.source is None:
        raise SubmissionError(f"{planned.program.file}: its text is not known. Give the file.")
    return rewritten(planned.program, changes)


def _around(tuned: TunedValue, literals: Mapping[str, TunedValue]) -> Sequence[str]:
    """Values around the student's, one below and one above."""
    value = float(tuned.value)
    if tuned.name in SHARES:
        return ("0.0", "0.1", "0.3")
    if tuned.name in STEPS:
        return tuple(f"{value * step:.3g}" for step in STEPS[tuned.name]) if value else ("0.01", "0.1")
    if tuned.name == "patch_size" and "image_size" in literals:
        size = int(float(literals["image_size"].value))
        divisors = [number for number in range(2, size) if size % number == 0]
        smaller = [number for number in divisors if number < value]
        larger = [number for number in divisors if number > value]
        return tuple(str(number) for number in (*smaller[-1:], *larger[:1]))
    if value.is_integer() and "." not in tuned.value:
        return tuple(str(number) for number in (int(value) // 2, int(value) * 2) if number > 0)
    return tuple(f"{number:.3g}" for number in (value / 2, value * 2))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0].isdigit()


def submission_file(path: Path, suffixes: Sequence[str]) -> Path:
    """Check that a path is a code file, which a study can be about, and return it.

    Raises:
        UsageError: It is not.
    """
    if path.suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(f"{path}: is not a code file ({', '.join(suffixes)}). Give one student's.")
    return path


# --- submission study ------------------------------------------------------------------------------------


TABLE, PLOT = "study.csv", "study.png"
StudyRow = tuple[str, str, bool, Training]
"""(field, value, whether it is the student's own, the training)."""
EpochWatcher = Callable[[Choice | None, EpochReport], None]
StudyWatcher = Callable[[Path, Study], contextlib.AbstractContextManager[EpochWatcher]]
"""(file, the trainings to run) -> a context that gives the watcher of each epoch of each training."""


@dataclass(frozen=True)
class StudyRequest:
    """A request for a study.

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
    """The result of a study.

    Attributes:
        rows: By field and value, the student's own among them.
        files: What was written.
        words: How what was measured is called and written.
    """

    rows: Sequence[StudyRow]
    files: tuple[Path, ...]
    words: MeasuredWords


def study_submission(request: StudyRequest, *, watch: StudyWatcher) -> SubmissionStudy:
    """Train a student's file with other values than the student's, in isolation.

    Raises:
        UsageError: There is no such file, data or value, or the folder cannot be written.
        SubmissionError: The file cannot be read, or holds nothing that could be varied.
        CourseError: A file of the course is malformed.
        SandboxError: The machine gives too little isolation.
    """
    values_by_field = wanted_values(request.vary)
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
        program = parsed_program(
            hosts.parsers, file.name, file.read_bytes(), assignment, modules=modules_beside(file)
        )
        planned = study(program, values_by_field, request.epochs)
        report = ends.enter_context(watch(file, planned))
        device = training_device(request.device)
        slots = device_slots(device, assignment.limits.gpu_memory_mb)
        run = Run(partial(draws_of, course, assignment), assignment, splits, hosts, device, slots)
        runs = studied(run, splits.of(1), submission, planned, jobs=request.jobs, report=report)
    rows, words = study_rows(planned, runs), measured_words(assignment, assignment.measures[0])
    atomic.make_folder(request.out)
    atomic.write(request.out / TABLE, study_table(rows, words).encode("utf-8"))
    plot = write_study_plot(rows, request.out / PLOT, words)
    return SubmissionStudy(rows, (request.out / TABLE, plot), words)


def study_rows(planned: Study, runs: Sequence[StudyRun]) -> list[StudyRow]:
    """A study by fields, with the student's own value in each."""
    own_values = {value.name: value.value for value in planned.program.tuned}
    base = next(run.training for run in runs if run.choice is None)
    rows: list[StudyRow] = []
    for field in dict.fromkeys(choice.field for choice in planned.choices):
        rows.append((field, own_values[field], True, base))
        rows += [
            (field, run.choice.value, False, run.training)
            for run in runs
            if run.choice is not None and run.choice.field == field
        ]
    return sorted(rows, key=lambda row: (row[0], float(row[1])))
