"""What the reference of `vit_finetune` reaches: its breakpoints, and what pretraining without labels gives.

Three ways of training, each with five seeds: as the assignment measures it; the head alone; from scratch, all
with as many epochs. On synthetic images from the weights that the assignment provides. On real ones from
weights that are made here: a model learns from 20,000 images of CIFAR-10, which no homework is given, by how
much each was turned (Gidaris et al., 2018), without their labels. The rate from scratch is the best of some,
by a seed of its own.

Every training is kept in `finetuning.json`, and the weights in the user's cache: the program may be stopped
at any time and goes on where it was. Environment variables: CIFAR10, the data set's file or folder; MINUTES,
after which no training begins.
"""

import shutil
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks import pretrained
from benchmarks.resumable_training import Training
from benchmarks.section import Section, verdict
from benchmarks.settings import cifar10, last_beginning
from benchmarks.training_records import Record, keep_instead, kept, record_of, trained, where
from grader.course.assignment_file import read_assignment
from grader.course.composing import source_text
from grader.course.dataset_file import load_dataset
from grader.course.homework_files import file_digest
from grader.course.reference_solution import solved_source
from grader.domain.assignment import Assignment
from grader.domain.assignment_files import PROVIDED
from grader.domain.errors import EngineError
from grader.files.known_folders import cache_folder
from grader.grading.hidden_splits import HiddenSplits, SplitKey
from grader.kit.splits import Splits, united, without_named

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("finetuning.json")
ASSIGNMENT = read_assignment(ROOT / "reference" / "vit_finetune")
SEEDS, TRIED_SEED = (1, 2, 3, 4, 5), 6
SECRET = "finetuning"  # in place of a course's: with it, each seed has a class's split of its own
STATE = cache_folder() / "finetuning"  # the user's, whatever a benchmark measures in
SYNTHETIC, REAL = "synthetic", "real"
TUNED, PROBE, SCRATCH = "fine-tuned", "head alone", "from scratch"
RATES = ("3e-3", "1e-2", "3e-2")  # of stage 1; the training from scratch has a tenth of it
TURNS, TURN_EPOCHS = 4, 40
LOADED, NOT_LOADED = "    model.load_state_dict(load_file(", "    (load_file("


@dataclass(frozen=True)
class Planned:
    """A training that is wanted.

    Attributes:
        way: How it is trained.
        rate: Of stage 1; empty: the solution's own.
    """

    way: str
    images: str
    seed: int
    rate: str = ""

    @property
    def recipe(self) -> str:
        """What the records call it."""
        return f"{self.way} {self.rate}".strip()

    @property
    def source(self) -> str:
        """The homework."""
        path = ASSIGNMENT.folder / "solution.py"
        homework = solved_source(source_text(path, path.name, ASSIGNMENT.edition), path.name)
        source = pretrained.with_handout(homework)
        if self.way == SCRATCH:  # without an early stop: it has as many epochs as the others have at most
            source = _instead(source, LOADED, NOT_LOADED).replace('"), strict=False)', '"))')
            source = _instead(source, "PATIENCE = 4", "PATIENCE = 15")
        return _instead(source, "RATE = 3e-3", f"RATE = {self.rate}") if self.rate else source

    @property
    def code(self) -> str:
        """What its record is of: the homework, and the weights from which it begins."""
        weights: list[str] = []
        if self.images == SYNTHETIC:
            weights = [file.sha256 for file in ASSIGNMENT.provided]
        elif self.way != SCRATCH:
            weights = [f"turned images, {TURN_EPOCHS} epochs"]
        return f"{self.source}\n{weights}"

    def done(self, records: Sequence[Record]) -> Record | None:
        """Its record, if it has been trained."""
        return record_of(records, self.recipe, self.images, self.code, self.seed)


def _instead(source: str, old: str, new: str) -> str:
    if source.count(old) != 1:
        raise EngineError(f"the solution of {ASSIGNMENT.id} has no single `{old}`")
    return source.replace(old, new)


def measured() -> Section:
    """Train all that has not been trained, as far as the time goes."""
    last = last_beginning()
    for images in (SYNTHETIC, REAL):
        loaded = _loaded(images)
        if loaded is None:
            continue
        assignment = _with_weights(images, loaded, last)
        for wanted in (_tried, _compared):
            for each in wanted(images):
                if assignment is not None and time.monotonic() < last:
                    _train(each, assignment, loaded)
    return recorded()


def recorded() -> Section:
    """What has been measured."""
    return section(kept(RECORDS))


def _tried(images: str) -> list[Planned]:
    """From scratch with each rate."""
    return [Planned(SCRATCH, images, TRIED_SEED, rate) for rate in RATES]


def _compared(images: str) -> list[Planned]:
    """The three ways with every seed, once the rates have been tried."""
    if not all(each.done(kept(RECORDS)) for each in _tried(images)):
        return []
    rate = best_rate(images)
    return [
        Planned(way, images, seed, rate if way == SCRATCH else "")
        for seed in SEEDS
        for way in (TUNED, PROBE, SCRATCH)
    ]


def best_rate(images: str) -> str:
    """The rate from scratch that gave the most with a seed of its own."""
    records = kept(RECORDS)
    found = {rate: Planned(SCRATCH, images, TRIED_SEED, rate).done(records) for rate in RATES}
    return max(RATES, key=lambda rate: record.counted or 0.0 if (record := found[rate]) else 0.0)


def _loaded(images: str) -> Splits | None:
    """All images; None where the real ones are not here."""
    use = ASSIGNMENT.required_data()
    source = cifar10()
    if images == REAL and not source.exists():
        return None
    name, given = (use.real, source) if images == REAL else (use.synthetic, None)
    return load_dataset(
        ROOT / "datasets", name, given, seed=0, train_share=use.train_share, cache=cache_folder()
    )


def _train(each: Planned, assignment: Assignment, loaded: Splits) -> None:
    if each.done(kept(RECORDS)) is not None:
        return
    use = assignment.required_data()
    [measure] = assignment.measures
    assert measure.call is not None
    stages = {TUNED: [3, 12], PROBE: [15, 0], SCRATCH: [0, 15]}[each.way]
    call = replace(measure.call, given={**measure.call.given, "epochs": stages})
    name = f"{each.recipe}, {each.images}, seed {each.seed}"
    try:
        record = trained(
            each.recipe,
            each.images,
            each.source,
            each.seed,
            assignment=assignment,
            splits=HiddenSplits(loaded, SplitKey(SECRET, assignment.id, str(each.seed)), use).of(1),
            measure=replace(measure, call=call),
            order_seed=each.seed,
            of=each.code,
        )
    except EngineError as error:
        print(f"{name}: {error}", flush=True)
        return
    print(f"{name}: {record.accuracy:.2f} % in {record.seconds:.0f} s", flush=True)
    keep_instead(RECORDS, record)


# --- pretraining without labels ---------------------------------------------------------------------------


def _with_weights(images: str, loaded: Splits, last: float) -> Assignment | None:
    """The assignment with the weights for these images; None where there is no time to make them."""
    if images == SYNTHETIC:
        return ASSIGNMENT
    STATE.mkdir(parents=True, exist_ok=True)
    [file] = [file for file in ASSIGNMENT.provided if not file.code]
    made = STATE / file.name
    if not made.exists():
        state = _turned(_apart(loaded), STATE / "turned.pt", last)
        if state is None:
            return None
        save_file(state, made)
    copy = STATE / ASSIGNMENT.id
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ASSIGNMENT.folder, copy)
    shutil.copyfile(made, copy / PROVIDED / file.name)
    settings = copy / "assignment.toml"
    settings.write_text(_instead(settings.read_text("utf-8"), file.sha256, file_digest(made)), "utf-8")
    return read_assignment(copy)


def _apart(loaded: Splits) -> Tensor:
    """The images that no homework is given, as they are trained on."""
    data, patterns = united(loaded), ASSIGNMENT.required_data().without
    every = np.arange(len(data.names), dtype=np.intp)
    apart = np.setdiff1d(every, without_named(every, data.names, patterns))
    return pretrained.standardized(data.images[apart])


def _turned(images: Tensor, state: Path, last: float) -> dict[str, Tensor] | None:
    """The weights of a model that has learned by how much images were turned; each epoch is kept."""
    torch.manual_seed(pretrained.SEED)
    model: nn.Module = pretrained.definitions()["VisionTransformer"](TURNS)
    training = Training(model, len(images), TURN_EPOCHS, pretrained.RATE, pretrained.SEED)
    training.resume(state)
    while training.epoch < TURN_EPOCHS:
        if time.monotonic() >= last:
            return None
        share = training.one_epoch(lambda rows, random: _turned_batch(images[rows], random))
        print(f"turned images, epoch {training.epoch} of {TURN_EPOCHS}: {share:.4f}", flush=True)
        training.keep(state)
    return pretrained.without_head(model)


def _turned_batch(batch: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    turns = torch.randint(TURNS, (len(batch),), generator=random)
    turned = [torch.rot90(image, int(turn), (1, 2)) for image, turn in zip(batch, turns, strict=True)]
    return torch.stack(turned), turns


# --- what is shown ----------------------------------------------------------------------------------------


def section(records: Sequence[Record]) -> Section:
    """The three ways on both kinds of images, and the breakpoints that follow."""
    rows, verdicts, used = [], [], []
    for images in (SYNTHETIC, REAL):
        means = {}
        for way in (TUNED, PROBE, SCRATCH):
            rate = best_rate(images) if way == SCRATCH else ""
            found = [Planned(way, images, seed, rate).done(records) for seed in SEEDS]
            own = [record for record in found if record is not None]
            used += own
            values = [100 * record.counted for record in own if record.counted is not None]
            if len(values) < 2:
                rows.append((way, images, "not measured", "", str(len(values)), "", ""))
                continue
            mean, deviation = statistics.mean(values), statistics.stdev(values)
            means[way] = mean
            rows.append(
                (
                    f"{way}, rate {rate} / 10" if rate else way,
                    images,
                    f"{mean:.2f} ± {deviation:.2f}",
                    f"{min(values):.2f} to {max(values):.2f}",
                    str(len(values)),
                    f"{statistics.median(record.seconds for record in own):.0f}",
                    f"{mean - 2 * deviation:.1f}",
                )
            )
        if images == REAL and {TUNED, SCRATCH} <= means.keys():
            gain = means[TUNED] - means[SCRATCH]
            verdicts.append(verdict("fine-tuning above scratch, real", gain, 5, at_most=False, unit="points"))
    use = ASSIGNMENT.required_data()
    return Section(
        "Fine-tuning in vit_finetune",
        f"The reference trained as a submission is: {use.train_per_class} training and {use.test_per_class} "
        "hidden images of each of ten classes, at most 15 epochs. On synthetic images from the weights that "
        "are provided; on real ones (CIFAR-10 as JPEG files of quality 75) from a model that learned in "
        f"{TURN_EPOCHS} epochs by how much 20,000 others were turned, without their labels. "
        f"From scratch, the rate is the best of {', '.join(RATES)} (/ 10), by a seed of its own. The "
        "laboratory's 94.98 % is of a larger model with weights from ImageNet, which cannot be had here.",
        (
            "way",
            "images",
            "accuracy, %: mean ± standard deviation",
            "least to greatest",
            "n",
            "seconds each (median)",
            "mean less two deviations, %",
        ),
        tuple(rows),
        tuple(verdicts),
        where(used, RECORDS.name),
    )
