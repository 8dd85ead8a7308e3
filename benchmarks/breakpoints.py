"""What the reference of an assignment with two models reaches, from which its breakpoints are taken.

A training takes minutes, so each is kept in `breakpoints.json` and none is done twice: the program may be
stopped at any time and goes on where it was. What is recorded is what trains: a plot that changes makes no
record old. Environment variables:

    CIFAR10    the data set's file or folder, where it is not ../shared/data/CIFAR-10-jpeg.zip
    MINUTES    no training begins after so many
    JOBS       trainings at once, each with one thread; 2 if left out
"""

import ast
import inspect
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.section import Section
from benchmarks.settings import cifar10, count, last_beginning
from benchmarks.training_records import Record, keep_instead, kept, record_of, trained, where
from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.composing import source_text
from grader.course.dataset_file import load_dataset
from grader.course.reference_solution import solved_source
from grader.course.student_data import student_split
from grader.domain.errors import EngineError
from grader.domain.measure import Measure
from grader.files.known_folders import cache_folder
from grader.grading.hidden_splits import HiddenSplits, SplitKey
from grader.kit.splits import Splits
from grader.training import EpochReport, blinding

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("breakpoints.json")
ASSIGNMENT = read_assignment(ROOT / "reference" / "vit_cifar10")
SEEDS = (1, 2, 3, 4, 5)
SECRET = "breakpoints"  # in place of a course's: with it, each seed has a class's split of its own
SYNTHETIC, REAL, GRADED = "synthetic", "real", "real, as graded"
KINDS = (GRADED, REAL, SYNTHETIC)


@dataclass(frozen=True)
class Planned:
    """A training that is wanted.

    Attributes:
        images: One of `KINDS`: students' own, or as a class's are drawn and changed when it is graded.
        code: What of the reference trains this model.
    """

    images: str
    measure: Measure
    seed: int
    code: str

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from the others."""
        return self.measure.id, self.images, self.seed

    def done(self, records: Sequence[Record]) -> Record | None:
        """Its record, if it has been trained."""
        recipe, without, seed = self.key
        return record_of(records, recipe, without, self.code, seed)


def measured() -> Section:
    """Train both models with every seed, as far as it has not been done."""
    train(whole())
    return recorded()


def recorded() -> Section:
    """What has been measured."""
    return section(whole(), kept(RECORDS))


def whole() -> list[Planned]:
    """Both models on both kinds of images, with every seed: all with one seed before any with the next."""
    code = {measure.id: training_code(measure) for measure in ASSIGNMENT.measures}
    return [
        Planned(images, measure, seed, _text_of(images) + code[measure.id])
        for seed in SEEDS
        for images in KINDS
        for measure in ASSIGNMENT.measures
    ]


def reference() -> str:
    """The homework of the reference."""
    path = ASSIGNMENT.folder / "solution.py"
    return solved_source(source_text(path, path.name, ASSIGNMENT.edition), path.name)


def training_code(measure: Measure) -> str:
    """What of the reference trains a model: the script, and the functions and classes that it reaches."""
    source = reference()
    read = program("homework.py", source.encode(), ASSIGNMENT.program_rules).read_for(measure.id)
    script = "\n".join(statement.source for statement in read.script.statements)
    defined = {
        node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    reached: dict[str, ast.AST] = {}
    waiting: list[ast.AST] = [ast.parse(script)]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id in defined and node.id not in reached:
                reached[node.id] = defined[node.id]
                waiting.append(defined[node.id])
    return "\n".join([*(ast.unparse(defined[name]) for name in defined if name in reached), script])


def _text_of(images: str) -> str:
    """What is made of the images: other synthetic images are another training."""
    if images == REAL:
        return ""
    if images == GRADED:
        return inspect.getsource(blinding)
    return (ROOT / "datasets" / f"{ASSIGNMENT.required_data().synthetic}.py").read_text(encoding="utf-8")


def splits_of(images: str) -> Callable[[int], Splits] | None:
    """A seed -> the images; None where the real ones are not here."""
    use, datasets = ASSIGNMENT.required_data(), ROOT / "datasets"
    source = cifar10()
    if images == SYNTHETIC:
        splits = student_split(datasets, use, None)
    elif not source.exists():
        return None
    elif images == REAL:
        splits = student_split(datasets, use, source)
    else:
        loaded = load_dataset(
            datasets, use.real, source, seed=0, train_share=use.train_share, cache=cache_folder()
        )
        return lambda seed: HiddenSplits(loaded, SplitKey(SECRET, ASSIGNMENT.id, str(seed)), use).of(1)
    return lambda seed: splits


def train(planned: Sequence[Planned]) -> None:
    """Train what has no record yet, until the time is up; a record of code that has changed is replaced."""
    last = last_beginning()
    wanted = [each for each in planned if each.done(kept(RECORDS)) is None]
    splits = {images: splits_of(images) for images in dict.fromkeys(each.images for each in wanted)}
    source, writing = reference(), threading.Lock()

    def one(each: Planned) -> None:
        images, name = splits[each.images], ", ".join(map(str, each.key))
        if images is None or time.monotonic() >= last:
            return
        try:
            record = trained(
                each.measure.id,
                each.images,
                source,
                each.seed,
                assignment=ASSIGNMENT,
                splits=images(each.seed),
                report=lambda report: _print_epoch(name, report),
                measure=each.measure,
                of=each.code,
                order_seed=each.seed if each.images == GRADED else None,
            )
        except EngineError as error:
            print(f"{name}: {error}", flush=True)
            return
        print(f"{name}: {record.accuracy:.2f} % in {record.seconds:.0f} s", flush=True)
        with writing:
            keep_instead(RECORDS, record)

    with ThreadPoolExecutor(count("JOBS", 2)) as pool:
        list(pool.map(one, wanted))


def _print_epoch(name: str, report: EpochReport) -> None:
    if report.epoch.number % 5 == 0:
        print(f"{name}: epoch {report.epoch.number} of {report.planned}", flush=True)


def section(planned: Sequence[Planned], records: Sequence[Record]) -> Section:
    """Both models on both kinds of images, and the breakpoint that follows."""
    rows, verdicts = [], []
    found = [record for each in planned if (record := each.done(records)) is not None]
    for images in KINDS:
        for measure in ASSIGNMENT.measures:
            own = [r for r in found if (r.recipe, r.without) == (measure.id, images)]
            values = [100 * r.counted for r in own if r.counted is not None]
            if len(values) < 2:
                rows.append((measure.title, images, "not measured", "", str(len(values)), "", "", ""))
                continue
            mean, deviation = statistics.mean(values), statistics.stdev(values)
            rows.append(
                (
                    measure.title,
                    images,
                    f"{mean:.2f} ± {deviation:.2f}",
                    f"{min(values):.2f} to {max(values):.2f}",
                    str(len(values)),
                    str(own[0].epochs),
                    f"{statistics.median(r.seconds for r in own):.0f}",
                    f"{mean - 2 * deviation:.1f}",
                )
            )
    if len(found) < len(planned):
        verdicts.append(f"{len(found)} of {len(planned)} trainings are done.")
    use = ASSIGNMENT.required_data()
    return Section(
        "Breakpoints of vit_cifar10",
        "The reference trained on the laptop track: "
        f"{use.train_per_class:,} training and {use.test_per_class:,} test images of each of ten classes. "
        f"`{REAL}` and `{SYNTHETIC}` are the students' own, as in `grader train`; `{GRADED}` are those of "
        "five classes, moved, bent and lit as when a submission is graded: the breakpoints are taken from "
        "these. The real ones are JPEG files of quality 75 with subsampled colors, so accuracies "
        "are a little below those of the original. The accuracy is the one that grading counts.",
        (
            "model",
            "images",
            "accuracy, %: mean ± standard deviation",
            "least to greatest",
            "n",
            "epochs",
            "seconds each (median)",
            "mean less two deviations, %",
        ),
        tuple(rows),
        tuple(verdicts),
        where(found, RECORDS.name),
    )
