"""What the grader measures of a training, beside what the student's script reaches by itself.

The same homework, in three forms, is executed as a student does (plain Python, the images in folders), and
trained as `grader train` does. Both have the same images and the same split. A training takes minutes, so
every one is kept in `script_alone.json`, and none is done twice while the code that is trained is the same.
`NEU_CLS` and `MINUTES` are as in `benchmarks.recipes`.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image

from benchmarks.recipes import ASSIGNMENT, print_epoch, real_splits
from benchmarks.section import Section
from benchmarks.settings import last_beginning
from benchmarks.training_records import (
    Record,
    children_seconds,
    digest,
    keep,
    kept,
    new_record,
    trained,
    where,
)
from grader.course.reference_solution import solved_source
from grader.domain.errors import EngineError
from grader.kit.splits import Splits

RECORDS = Path(__file__).with_name("script_alone.json")
SEEDS = (1, 2, 3)
EPOCHS = 30
INSIDE, ALONE = "", "the grader"  # what a record is without
MOST_POINTS = 1.5  # of the difference of the means

ONE_LOOP = "N_EPOCHS = 30"
LOOP = re.compile(r"^for epoch in range\(1, N_EPOCHS \+ 1\):\n(?:    .*\n)+", re.MULTILINE)
PREPARED = re.compile(r"^with zipfile\.ZipFile.*?^split_dataset\([^\n]*\n", re.MULTILINE | re.DOTALL)
SCHEDULE = re.compile(r"^scheduler = [^\n]*\n", re.MULTILINE)
OPTIMIZER = re.compile(r"^model = ViT\(.*?^scheduler = [^\n]*\n", re.MULTILINE | re.DOTALL)

TWO_STAGES = """\
for epoch in range(1, 21):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)

for group in optimizer.param_groups:
    group["lr"] = 1e-4
for epoch in range(21, N_EPOCHS + 1):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
"""

SIZES = "image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128"
FIT = f"""\
N_EPOCHS = {EPOCHS}
start = time.time()


def build():
    return ViT({SIZES}).to(device)


def fit(network, rate, epochs):
    tuner = optim.AdamW(network.parameters(), lr=rate, weight_decay=0.05)
    plan = optim.lr_scheduler.CosineAnnealingLR(tuner, epochs)
    seen, losses = [], []
    for epoch in range(epochs):
        train_epoch(network, tuner, train_loader, seen)
        evaluate(network, test_loader, losses)
        plan.step()
    return seen, losses


found = {{}}
for rate in (1e-4, 1e-3):
    seen, losses = fit(build(), rate, 2)
    found[rate] = losses[-1]
best_rate = min(found, key=found.get)
print("best rate", best_rate)

model = build()
train_loss_history, test_loss_history = fit(model, best_rate, N_EPOCHS)
"""


def forms() -> Mapping[str, str]:
    """Name -> the homework: the reference with fewer epochs, and two other ways to train it."""
    path = ASSIGNMENT.folder / "solution.py"
    whole = solved_source(path.read_text(encoding="utf-8"), path.name)
    whole = whole.replace(ONE_LOOP, f"N_EPOCHS = {EPOCHS}")
    staged = SCHEDULE.sub("", LOOP.sub(lambda _: TWO_STAGES, whole))
    fitted = LOOP.sub("", OPTIMIZER.sub(lambda _: FIT, whole))
    return {"one loop": whole, "two stages": staged, "fit, after a study with it": fitted}


def measured() -> Section:
    """Train what has no record yet, as far as there is time."""
    train()
    return recorded()


def recorded() -> Section:
    """What has been measured."""
    return section(kept(RECORDS))


def train() -> None:
    """Train what has no record, until the time is up."""
    last = last_beginning()
    splits = real_splits()
    for seed in SEEDS:
        for name, form in forms().items():
            source = _seeded(form, seed)
            for without in (INSIDE, ALONE):
                if time.monotonic() >= last or _found(name, without, source, seed) is not None:
                    continue
                print(f"{name}{f', without {without}' if without else ''}, seed {seed}", flush=True)
                try:
                    record = (
                        alone(name, source, seed, splits)
                        if without == ALONE
                        else trained(
                            name,
                            without,
                            source,
                            seed,
                            assignment=ASSIGNMENT,
                            splits=splits,
                            report=print_epoch,
                        )
                    )
                except EngineError as error:
                    print(f"  {error}", flush=True)
                    continue
                print(f"  {100 * (record.counted or 0):.2f} % in {record.seconds:.0f} s", flush=True)
                keep(RECORDS, [*kept(RECORDS), record])


def _seeded(form: str, seed: int) -> str:
    return form.replace("torch.manual_seed(42)", f"torch.manual_seed({seed})")


def alone(name: str, source: str, seed: int, splits: Splits) -> Record:
    """A homework as plain Python executes it.

    Raises:
        EngineError: It did not come to its end.
    """
    began, before = time.monotonic(), children_seconds()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write_images(folder / "data", splits)
        (folder / "homework.py").write_text(PREPARED.sub("", source), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "homework.py"],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    printed_accuracies = re.findall(r"accuracy (\d+)/(\d+)", done.stdout)
    if done.returncode or not printed_accuracies:
        raise EngineError(f"{name}, seed {seed}: the script by itself came to no end: {done.stderr[-300:]}")
    correct, images = map(int, printed_accuracies[-1])  # of the weights that were saved and read back
    return new_record(
        recipe=name,
        without=ALONE,
        source=source,
        epochs=EPOCHS,
        seed=seed,
        correct=correct,
        images=images,
        seconds=time.monotonic() - began,
        cpu_seconds=children_seconds() - before,
        device="cpu",
        counted=correct / images,
    )


def _write_images(folder: Path, splits: Splits) -> None:
    """The images as the folders of `ImageFolder`, of one class each."""
    parts = (
        ("train", splits.train_images, splits.train_labels),
        ("test", splits.test_images, splits.test_labels),
    )
    for part, images, labels in parts:
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            target = folder / part / splits.classes[label]
            target.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(target / f"{number:05d}.png")


def _found(name: str, without: str, source: str, seed: int) -> Record | None:
    wanted = (name, without, digest(source), seed)
    return next((r for r in kept(RECORDS) if (r.recipe, r.without, r.digest, r.seed) == wanted), None)


def section(records: Sequence[Record]) -> Section:
    """The means of each form, and their difference."""
    rows, verdicts = [], []
    for name, form in forms().items():
        wanted = {digest(_seeded(form, seed)) for seed in SEEDS}  # there may be others, of earlier forms
        alone, inside = (
            [
                100 * r.counted
                for r in records
                if (r.recipe, r.without) == (name, w) and r.digest in wanted and r.counted is not None
            ]
            for w in (ALONE, INSIDE)
        )
        if len(alone) != len(SEEDS) or len(inside) != len(SEEDS):
            continue
        difference = statistics.mean(inside) - statistics.mean(alone)
        rows.append((name, _each(alone), _each(inside), f"{difference:+.2f}"))
        holds = "holds" if abs(difference) <= MOST_POINTS else "falls short"
        verdicts.append(f"{name}: {difference:+.2f} points, at most {MOST_POINTS:g} asked for: {holds}.")
    return Section(
        "Trained inside the grader, and by the script alone",
        f"The reference with {EPOCHS} epochs in three forms: one loop; two stages, the second with a lower "
        "rate; a `fit` function that a study of two rates and the final model share, the better rate being "
        f"used. Real images, the students' split (70/30, seed 42), seeds {SEEDS[0]} to {SEEDS[-1]}, one "
        "thread. Alone: the accuracy of the weights that the script saves. Inside: the accuracy that counts, "
        "the mean of the last epochs.",
        ("form", "the script alone, %", "inside the grader, %", "difference of the means, points"),
        tuple(rows),
        tuple(verdicts),
        where(records, RECORDS.name),
    )


def _each(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})"
