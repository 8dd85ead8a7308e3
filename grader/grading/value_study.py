"""A study of a student's own choices: short trainings, in each of which one value is another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.analysis.rewriting import Rewritten, rewritten
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.evidence import Training
from grader.domain.program import Program, TunedValue
from grader.domain.submission import Submission
from grader.grading.run import Run
from grader.grading.side_by_side import side_by_side
from grader.grading.training_stage import one_training
from grader.kit.splits import Splits
from grader.parser.client.parsed_program import parsed
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
    """What a training with another value gave; `choice` is None for the student's own values."""

    choice: Choice | None
    training: Training


@dataclass(frozen=True)
class Study:
    """What is going to be trained.

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
    """What `--vary` asks for: `lr,depth=2/8` is {learning_rate: (), depth: ("2", "8")}.

    Raises:
        UsageError: It is written otherwise.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        name, _, values = part.strip().partition("=")
        chosen = tuple(value.strip() for value in values.split("/")) if values else ()
        if not name or not all(map(_is_number, chosen)):
            raise UsageError(f"--vary {text}: expected names, with values if you like: lr,depth=2/8,heads")
        found[SHORT_NAMES.get(name, name)] = chosen
    return found


def study(program: Program, wanted: Mapping[str, tuple[str, ...]], epochs: int | None) -> Study:
    """What is going to be trained.

    Args:
        program: The student's.
        wanted: Field -> values; where there are none, they are chosen around the student's.
        epochs: Of each training; by default the student's, at most 10.

    Raises:
        UsageError: Nothing of it can be varied, or it would take too many trainings.
    """
    written = {value.name: value for value in program.tuned if value.written is not None}
    left_out: list[str] = []
    choices: list[Choice] = []
    for field, values in wanted.items():
        own = written.get(field)
        if own is None:
            left_out.append(f"`{field}` cannot be varied: the source does not write it as a number.")
            continue
        others = values or _around(own, written)
        choices += [Choice(field, value) for value in others if float(value) != float(own.value)]
    if not choices:
        raise UsageError(" ".join(left_out) or "There is nothing to vary. Name values: --vary depth=2/8")
    if len(choices) >= MOST_RUNS:
        raise UsageError(f"That is {len(choices)} trainings; at most {MOST_RUNS} are done. Vary less.")
    own_epochs = written.get("epochs")
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
    report: Callable[[Choice | None, EpochReport], None] = lambda choice, told: None,
) -> list[StudyRun]:
    """Train the student's own values, then each choice, in isolation.

    Args:
        splits: The images.
        submission: Whose seeds are used: they are the same in all trainings.
        jobs: How many at once.
        report: Told each epoch of each training.

    Returns:
        The results in the order of the study.
    """
    every: list[Choice | None] = [None, *planned.choices]

    def trained(choice: Choice | None) -> StudyRun:
        source = _source(planned, choice)
        program = parsed(
            run.hosts.parsers, planned.program.file, source.code, run.assignment, modules=source.modules
        )
        told = one_training(run, splits, program, submission, lambda each: report(choice, each))
        return StudyRun(choice, told)

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


def _around(own: TunedValue, written: Mapping[str, TunedValue]) -> Sequence[str]:
    """Values around the student's, one below and one above."""
    value = float(own.value)
    if own.name in SHARES:
        return ("0.0", "0.1", "0.3")
    if own.name in STEPS:
        return tuple(f"{value * step:.3g}" for step in STEPS[own.name]) if value else ("0.01", "0.1")
    if own.name == "patch_size" and "image_size" in written:
        size = int(float(written["image_size"].value))
        divisors = [each for each in range(2, size) if size % each == 0]
        smaller = [each for each in divisors if each < value]
        larger = [each for each in divisors if each > value]
        return tuple(str(each) for each in (*smaller[-1:], *larger[:1]))
    if value.is_integer() and "." not in own.value:
        return tuple(str(each) for each in (int(value) // 2, int(value) * 2) if each > 0)
    return tuple(f"{each:.3g}" for each in (value / 2, value * 2))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0].isdigit()


def submission_file(path: Path, suffixes: Sequence[str]) -> Path:
    """The code file that a study is about.

    Raises:
        UsageError: It is none.
    """
    if path.suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(f"{path}: is not a code file ({', '.join(suffixes)}). Give one student's.")
    return path
