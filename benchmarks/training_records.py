"""Trainings of a homework's source, each kept as a record in a file that only the program writes."""

import ast
import datetime
import hashlib
import json
import resource
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from benchmarks.section import processor
from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError
from grader.domain.evidence import TrainingOutcome
from grader.domain.measure import Measure
from grader.kit.splits import Splits
from grader.students.own_machine import OwnWorkers, own_program, with_own_machine_limits
from grader.training import EpochReport, job_of, trained_once

LOAD_SECONDS = 1800.0  # a busy machine is no reason to lose a night of training


@dataclass(frozen=True)
class Record:
    """One training.

    Attributes:
        recipe: The recipe's name.
        without: The ingredient that was left out; empty: none.
        digest: Of the code that was trained.
        epochs: All of them; the model is that of the last one.
        correct: How many of the `images` it got right. They were used for nothing else.
        seconds: Of the whole training, with the grader's look at the test images after every epoch.
        cpu_seconds: What its processes computed, which others on the machine do not lengthen.
        threads: Of PyTorch.
        on: The day, in UTC.
        counted: The accuracy that grading counts, 0 to 1: of the last epochs. None in older records.
    """

    recipe: str
    without: str
    digest: str
    seed: int
    epochs: int
    correct: int
    images: int
    seconds: float
    cpu_seconds: float
    threads: int
    device: str
    processor: str
    torch: str
    on: str
    counted: float | None = None

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * self.correct / self.images


def digest(source: str) -> str:
    """Of code: it is the same when only comments, docstrings or spaces differ."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def kept(path: Path) -> list[Record]:
    """The records of a file; none when it is not there."""
    return [Record(**row) for row in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def record_of(records: Sequence[Record], recipe: str, without: str, code: str, seed: int) -> Record | None:
    """The record of a training, if it has been done with this code."""
    wanted = (recipe, without, digest(code), seed)
    return next((r for r in records if (r.recipe, r.without, r.digest, r.seed) == wanted), None)


def mean_and_deviation(values: Sequence[float], *, sign: str = "") -> str:
    """`82.08 ± 0.31`; of a single value, that alone.

    Args:
        sign: `+` writes the sign of a positive mean, too.
    """
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{sign}.2f}{deviation}"


def keep(path: Path, records: list[Record]) -> None:
    """Write the records, one a line, in one piece: whoever is killed leaves the old file or the new one."""
    lines = ",\n".join(json.dumps(asdict(record)) for record in records)
    fresh = path.with_suffix(".new")
    fresh.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    fresh.replace(path)


def keep_instead(path: Path, record: Record) -> None:
    """Write a record, in place of what was recorded of the same recipe, ingredient and seed."""
    same = (record.recipe, record.without, record.seed)
    others = [r for r in kept(path) if (r.recipe, r.without, r.seed) != same]
    keep(path, [*others, record])


def trained(
    recipe: str,
    without: str,
    source: str,
    seed: int,
    *,
    assignment: Assignment,
    splits: Splits,
    report: Callable[[EpochReport], None] = lambda epoch: None,
    measure: Measure | None = None,
    of: str = "",
    order_seed: int | None = None,
) -> Record:
    """Train a homework once, as `grader train` does, and count what it gets right.

    Args:
        recipe: The recipe's name, for the record.
        without: The ingredient that was left out, for the record.
        source: The homework.
        seed: Of the weights, the order of the images, and all other chance.
        assignment: Its assignment.
        splits: The images.
        report: Told each epoch.
        measure: Which of the assignment's models; None: the first.
        of: The code that the record is of, where that is not the whole homework.
        order_seed: Given, the images are shown as when a class is graded: see `Blinding`.

    Raises:
        EngineError: The training did not complete, or the homework's own loop could not be used.
    """
    limits = replace(with_own_machine_limits(assignment).limits, load_seconds=LOAD_SECONDS)
    before = children_seconds()
    with tempfile.TemporaryDirectory() as folder, OwnWorkers(assignment, Path(folder)) as workers:
        homework = Path(folder) / "homework.py"
        homework.write_text(source, encoding="utf-8")
        for file in assignment.provided:
            shutil.copyfile(assignment.provided_folder / file.name, homework.with_name(file.name))
        measure = measure or assignment.measures[0]
        job = job_of(
            assignment,
            measure,
            splits,
            program=own_program(homework, assignment).read_for(measure.id),
            limits=limits,
            forbidden=assignment.forbidden_patterns,
            device="cpu",
            seed=seed,
        )
        job = replace(job, order_seed=order_seed)
        training = trained_once(workers, job, report).training
    if training.outcome is not TrainingOutcome.COMPLETED:
        said = training.reason or "its loop over epochs could not be executed"
        raise EngineError(f"{recipe} without {without or 'nothing'}, seed {seed}: {said}")
    return new_record(
        recipe=recipe,
        without=without,
        source=of or source,
        seed=seed,
        epochs=len(training.epochs),
        correct=sum(row[place] for place, row in enumerate(training.confusion)),
        images=sum(map(sum, training.confusion)),
        seconds=training.seconds,
        cpu_seconds=children_seconds() - before,
        device=training.device,
        counted=training.accuracy,
    )


def new_record(
    *,
    recipe: str,
    without: str,
    source: str,
    seed: int,
    epochs: int,
    correct: int,
    images: int,
    seconds: float,
    cpu_seconds: float,
    device: str,
    counted: float | None,
) -> Record:
    """A record of a training that was done here and today, with what a worker is told: one thread."""
    return Record(
        recipe=recipe,
        without=without,
        digest=digest(source),
        seed=seed,
        epochs=epochs,
        correct=correct,
        images=images,
        seconds=round(seconds, 1),
        cpu_seconds=round(cpu_seconds, 1),
        threads=1,
        device=device,
        processor=processor(),
        torch=version("torch"),
        on=f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}",
        counted=counted,
    )


def where(records: Sequence[Record], file: str) -> str:
    """When and on what the records were made, and the file that holds them."""
    if not records:
        return "Not measured yet."
    days = sorted({record.on for record in records})
    kinds = sorted({f"{r.device}, {r.threads} thread; {r.processor}; torch {r.torch}" for r in records})
    period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"Measured on {period}; {'; '.join(kinds)}. Every training: `benchmarks/{file}`."


def children_seconds() -> float:
    """Processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
