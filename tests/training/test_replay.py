"""Each of the written styles of training is executed as it stands, on the grader's images."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grader.analysis import program
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.program_run import Rehearsal, Watched
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, StudentRaised, WorkerProcess
from grader.protocol.replies import EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import STATE, Load, Train
from grader.protocol.worker_reports import WatchRecord
from grader.training import Job, made_up_images, rehearsed
from grader.training.trained_weights import other_tree, reported_state, same_state
from grader.training.training_job import stages

STYLES = sorted((Path(__file__).parent / "styles").glob("*.py"))
CLASSES = ("dark", "gray", "light")
HEAD = """
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
import matplotlib.pyplot as plt


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels=1):
        super().__init__()
        self.shape = (channels, image_size, image_size)
        self.body = nn.Linear(channels * image_size * image_size, dim)
        self.blocks = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.head = nn.Linear(dim, num_classes)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        assert x.shape[1:] == self.shape, x.shape
        x = self.body(x.flatten(1))
        for block in self.blocks:
            x = x + block(x).tanh()
        return self.head(x) * self.scale


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(x), y).item() for x, y in data_loader]
    loss_history.append(sum(losses) / len(losses))


"""


@dataclass(frozen=True)
class Replayed:
    """What a worker told of a training.

    Attributes:
        rehearsal: What a trial on made-up images had told before.
        restored: The weights in the end are not those of the last epoch.
        watched: What it told of forbidden parts, and of where the code pried.
        parameters: How many numbers the weights have in the end.
    """

    program: Program
    rehearsal: Rehearsal
    plan: TrainingPlan
    epochs: list[EpochDone]
    end: Trained
    restored: bool
    watched: Watched
    parameters: int


def images(per_class: int, seed: int = 1) -> tuple[Any, Any]:
    """Images uint8 (n, 8, 8) whose brightness is their class, and their labels."""
    labels = np.repeat(np.arange(3), per_class)
    noise = np.random.default_rng(seed).integers(0, 60, (len(labels), 8, 8))
    return (noise + labels[:, None, None] * 90).astype(np.uint8), labels.astype(np.int64)


def colored_images(per_class: int, seed: int = 1) -> tuple[Any, Any]:
    """Images uint8 (n, 8, 8, 3) whose color alone is their class: as gray ones they are alike."""
    labels = np.repeat(np.arange(3), per_class)
    noise = np.random.default_rng(seed).integers(0, 40, (len(labels), 8, 8, 3))
    # red, green and blue of the same luminance (ITU-R 601-2)
    colors = np.array([(200, 0, 0), (0, 102, 0), (0, 0, 215)])
    level = np.array([60, 60, 95])[:, None]
    return (noise + (colors + level - 60)[labels][:, None, None]).clip(0, 255).astype(np.uint8), labels


@pytest.fixture
def replayed(
    spawn: Callable[[], WorkerProcess],
    analyzed: Callable[[str], Program],
    measuring: Callable[..., Any],
    assignment: Assignment,
) -> Callable[..., Replayed]:
    """Train the homework of a text, after the parts that are the same for all."""

    def trained(text: str | Program, seed: int = 3, made: Callable[..., Any] = images) -> Replayed:
        read = analyzed(HEAD + text) if isinstance(text, str) else text
        train, labels = made(12)
        arrays = {"train_images": train, "train_labels": labels}
        load = Load(read, assignment.forbidden_patterns, CLASSES, seed)
        request = Train(CLASSES, seed=seed, arrays=arrays)
        process = spawn()
        link = Link(process, WatchRecord(assignment.forbidden_patterns))
        replies: list[Any] = []
        try:
            link.ask(load, Loaded, seconds=30, limit=FrameLimit())
            kinds = (TrainingPlan, EpochDone, Trained)
            for reply in link.conversation(request, kinds, seconds=60, limit=FrameLimit()):
                replies.append(reply)
                if isinstance(reply, Trained):
                    break
            link.prove_watch(7, seconds=30, limit=FrameLimit())
        finally:
            process.close()
        plan = [reply for reply in replies if isinstance(reply, TrainingPlan)][-1]
        epochs = [reply for reply in replies if isinstance(reply, EpochDone)]
        states = [reported_state(told.arrays, told.modules) for told in (epochs[-1], replies[-1])]
        beside = measuring(load, request, made(4, seed=2)[0])
        built = beside.built(epochs[0].made).modules
        assert all(other_tree(told.modules, built) == "" for told in (*epochs, replies[-1]))
        end = beside.measured(replies[-1])
        restored, watched = not same_state(*states), link.watch.watched
        few = made_up_images(CLASSES, train.shape[1:])
        tried = rehearsed(
            spawn, Job(read, assignment.limits, assignment.forbidden_patterns, seed=seed, splits=few)
        )
        size = sum(array.size for name, array in replies[-1].arrays.items() if name.startswith(STATE))
        return Replayed(
            read, tried, plan, [beside.measured(done) for done in epochs], end, restored, watched, size
        )

    return trained


@pytest.fixture
def as_notebook(assignment: Assignment) -> Callable[..., Program]:
    """The program of a notebook: (execution count, source) of each cell, and what some counts printed."""

    def make(cells: list[tuple[int, str]], printed: dict[int, str]) -> Program:
        made = [
            {
                "cell_type": "code",
                "execution_count": count,
                "source": source,
                "outputs": [{"output_type": "stream", "text": printed.get(count, "")}],
            }
            for count, source in cells
        ]
        data = json.dumps({"cells": made, "nbformat": 4}).encode()
        return program("a.ipynb", data, assignment.program_rules)

    return make


def fields(text: str) -> dict[str, str]:
    """`Name: value` lines of a style's docstring."""
    return dict(re.findall(r"^(\w+): (.+?)(?:\"\"\")?$", text.split('"""')[1], flags=re.MULTILINE))


OWN_IMAGES = """
def tensors(folder):
    pictures = datasets.ImageFolder(folder)
    images = [transforms.functional.pil_to_tensor(picture.convert("L")) for picture, _ in pictures]
    return torch.stack(images).float() / 255, torch.tensor(pictures.targets)


class Batches:
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels) // 4

    def __iter__(self):
        for rows in torch.randperm(len(self.labels)).split(4):
            yield (self.images[rows] - SHIFT) / SCALE, self.labels[rows]


batches = Batches(*tensors("data/train"))
model = ViT(image_size=8, patch_size=4, num_classes=3, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, batches, [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
"""


@pytest.mark.parametrize(("shift", "scale", "otherwise"), [(0.5, 0.5, False), (0, 1, True)])
def test_images_that_own_code_prepares(
    shift: float, scale: float, otherwise: bool, replayed: Callable[..., Replayed]
) -> None:
    """A folder without a transform gives pictures. What only the batches get, the test images lack."""
    found = replayed(OWN_IMAGES.replace("SHIFT", str(shift)).replace("SCALE", str(scale)))
    assert found.plan.assumed == ("batch_size", "transform")
    assert found.end.fed_otherwise is otherwise


def test_a_method_of_ones_own_that_is_called_as_one_that_opens_files(
    replayed: Callable[..., Replayed],
) -> None:
    """`.extract` of an archive is left out, and of an object of the student's own it is not."""
    text = OWN_IMAGES.replace("(self.images[rows] - SHIFT) / SCALE", "self.extract(rows)")
    method = "    def extract(self, rows):\n        return 2 * self.images[rows] - 1\n"
    found = replayed(text.replace("    def __len__", f"{method}\n    def __len__"))
    assert len(found.epochs) == 2 and not found.end.fed_otherwise


CLASSES_OF_FILES = """
from pathlib import Path
files = sorted(path.parent.name for path in Path("data/train").glob("*/*"))
class_names = sorted(set(files))
"""


def test_epochs_that_no_loop_shows_and_classes_of_files_that_are_not_there(
    replayed: Callable[..., Replayed],
) -> None:
    """Each call of the graded function is an epoch; the grader names the classes."""
    start, _, end = (
        OWN_IMAGES.replace("SHIFT", "0.5").replace("SCALE", "0.5").partition("for epoch in range(2):\n")
    )
    epochs = end.replace(
        "    train_epoch(model, optimizer, batches, [])",
        "[train_epoch(model, optimizer, batches, []) for _ in range(3)]",
    )
    text = CLASSES_OF_FILES + start.replace("num_classes=3", "num_classes=len(class_names)") + epochs
    found = replayed(text)
    assert [done.steps for done in found.epochs] == [9, 9, 9]


STUDY_OF_BYTES = """
class Bytes(Batches):
    def __iter__(self):
        for images, labels in super().__iter__():
            yield images * 255, labels


candidate = ViT(image_size=8, patch_size=4, num_classes=3, dim=8, depth=1, heads=1, mlp_dim=8)
losses = []
for epoch in range(1):
    train_epoch(candidate, optim.SGD(candidate.parameters(), lr=0.1), Bytes(*tensors("data/train")), losses)
rate = 0.1 if losses[-1] < 1e9 else 0.01
"""


def test_images_of_models_that_do_not_count_are_no_matter(replayed: Callable[..., Replayed]) -> None:
    """A study of other preparations, before the model that is saved."""
    text = OWN_IMAGES.replace("SHIFT", "0.5").replace("SCALE", "0.5")
    text = text.replace(
        "optimizer = optim.SGD(model.parameters(), lr=0.1)",
        "optimizer = optim.SGD(model.parameters(), lr=rate)",
    )
    found = replayed(text.replace("batches = Batches", f"{STUDY_OF_BYTES}batches = Batches"))
    assert found.end.other_models == 1
    assert not found.end.fed_otherwise


TRANSFORM = "transform = transforms.Compose([transforms.Grayscale(1), transforms.ToTensor()])\n"
NEUTRAL = TRANSFORM + "images = datasets.ImageFolder('data', transform=transform)\n"
IN_MAIN = (
    TRANSFORM
    + "def made(folder, shuffle):\n"
    + "    images = datasets.ImageFolder(folder, transform=transform)\n"
    + "    return DataLoader(images, batch_size=4, shuffle=shuffle)\n"
)
# how a loader is made that is trained with, which nothing but its use shows in some
TRAINED_WITH = {
    "a sampler": NEUTRAL
    + "sampler = torch.utils.data.WeightedRandomSampler([1.0] * len(images), len(images))\n"
    + "batches = DataLoader(images, batch_size=4, sampler=sampler)\n",
    "shuffle by a name": NEUTRAL + "S = True\nbatches = DataLoader(images, batch_size=4, shuffle=S)\n",
    "shuffle by its place": NEUTRAL + "batches = DataLoader(images, 4, True)\n",
    "in order": NEUTRAL + "batches = DataLoader(images, batch_size=4)\n",
    "a name with test in it": TRANSFORM
    + "latest = datasets.ImageFolder('data/train', transform=transform)\n"
    + "batches = DataLoader(latest, batch_size=4, shuffle=True)\n",
    "a misleading name": NEUTRAL
    + "test_batches = batches = DataLoader(images, batch_size=4, shuffle=False)\n",
    "a folder in another": IN_MAIN + "batches = made('/home/dev/lab/data/train', True)\n",
    "a parameter": IN_MAIN + "batches = made('data', True)\n",
}


@pytest.mark.parametrize("loader", TRAINED_WITH)
def test_a_loader_that_is_trained_with_gives_all_images(
    loader: str, replayed: Callable[..., Replayed]
) -> None:
    """Whatever its name, its folder and its arguments make of it."""
    loop = OWN_IMAGES[OWN_IMAGES.index("model = ViT(") :]
    found = replayed(TRAINED_WITH[loader] + loop)
    assert [done.steps for done in found.epochs] in ([9, 9], [10, 9])
    assert found.plan.batch_size == 4 and not found.end.fed_otherwise


@pytest.mark.sampled(6)
@pytest.mark.parametrize("style", STYLES, ids=lambda path: path.stem)
def test_a_style_is_replayed(style: Path, replayed: Callable[..., Replayed]) -> None:
    """What its docstring says was trained: epochs, rates, optimizer, schedule, and the weights at the end."""
    text = style.read_text(encoding="utf-8")
    told = fields(text)
    found = replayed(text)
    assert not found.plan.assumed, found.plan
    assert len(found.epochs) == found.end.epochs == int(told["Epochs"])
    assert found.plan.epochs == int(told.get("Planned", told["Epochs"]))
    rates = [float(rate) for rate in told["Rates"].split()]
    assert [done.learning_rate for done in found.epochs] == pytest.approx(rates, abs=1e-5)
    assert (found.plan.optimizer, found.plan.scheduler) == (told["Optimizer"], told.get("Schedule", ""))
    assert found.plan.batch_size == 4
    assert_rehearsed(found)
    assert not found.end.fed_otherwise
    assert found.rehearsal.other_models == int(told.get("Others", 0))
    assert len(found.program.script.left_alone) == int(told.get("LeftAlone", 0))
    assert_tuned_values(found)
    if "Optimizers" in told:
        assert [stage.optimizer for stage in found.rehearsal.stages] == told["Optimizers"].split()
    if "Parameters" in told:
        assert found.parameters == int(told["Parameters"])
    if "train_epoch(" in text and "backward()" not in text:
        # of every epoch, since one that trains by itself reports to nobody
        assert all(len(done.arrays["reported"]) for done in found.epochs)
    assert found.program.script.validates is ("Validates" in told)
    assert found.restored is ("Counted" in told)
    if told.get("Outputs") == "zero":
        assert not found.end.arrays["logits"].any()
    elif any(rates):
        assert found.end.arrays["logits"].any()
    assert found.watched == Watched()
    assert not found.program.forbidden and not [note for note in found.program.notes if note.ask_person]
    assert len(STYLES) >= 25


def assert_rehearsed(found: Replayed) -> None:
    """What a trial on made-up images told is what was trained."""
    trained = stages(found.epochs, found.program)
    assert found.rehearsal.complete and found.rehearsal.epochs == found.end.epochs
    assert (found.rehearsal.parameters or 0) >= max(stage.learned for stage in found.rehearsal.stages) > 0
    assert (found.rehearsal.multiply_adds or 0) > 0
    same = {"first_rate": 0, "last_rate": 0, "per_batch": False}
    assert [replace(stage, **same) for stage in found.rehearsal.stages] == [
        replace(stage, **same) for stage in trained
    ]
    for told, did in zip(found.rehearsal.stages, trained, strict=True):
        # a rate that changes with each step depends on how many there are: three batches, of which each steps
        assert did.per_batch or told.last_rate == pytest.approx(did.last_rate, abs=1e-5)
        assert did.per_batch or told.first_rate == pytest.approx(did.first_rate, abs=1e-5)
        assert did.per_batch >= told.per_batch
    assert all(stage.loop is not None for stage in trained)


def assert_tuned_values(found: Replayed) -> None:
    """The values that the report shows as the student's are those that were trained with."""
    tuned = {value.name: value.value for value in found.program.tuned}
    stages = found.rehearsal.stages
    if "optimizer" in tuned:
        assert tuned["optimizer"] in {stage.optimizer for stage in stages}
    if len(stages) == 1 and tuned.get("epochs", "").isdecimal():
        assert int(tuned["epochs"]) >= stages[0].epochs


# written by somebody who knew neither the grader nor its tests; the docstrings tell what plain Python does
UNSEEN = sorted((Path(__file__).parent / "unseen").glob("*.py"))
# what depends on the images, which are others here: when a patience is lost, which epoch is best,
# whose settings a search finds best, which rate a range test suggests
DEPENDS = {
    "while_patience_timed": {"Epochs", "Rates"},
    "dotted_overrides": {"Optimizers"},
    "lr_finder_onecycle": {"Rates"},
}


def outcome(found: Replayed) -> dict[str, str]:
    """What the grader made of a style, in the words of the docstrings."""
    optimizers = list(dict.fromkeys(stage.optimizer for stage in found.rehearsal.stages))
    return {
        "Epochs": str(len(found.epochs)),
        "Rates": " ".join(f"{done.learning_rate:.5f}" for done in found.epochs),
        "Optimizers": " ".join(optimizers),
        "Parameters": str(found.parameters),
        "Weights": "other" if found.restored else "last",
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("style", UNSEEN, ids=lambda path: path.stem)
def test_an_unseen_style_is_replayed(style: Path, replayed: Callable[..., Replayed]) -> None:
    text = style.read_text(encoding="utf-8")
    told = fields(text)
    found = replayed(text)
    seen = outcome(found)
    told["Rates"] = " ".join(f"{float(rate):.5f}" for rate in told["Rates"].split())
    told["Weights"] = "last" if told["Weights"] == "last" else "other"
    depends = DEPENDS.get(style.stem, set())
    assert {name: value for name, value in seen.items() if name not in depends} == {
        name: value for name, value in told.items() if name in seen and name not in depends
    }


LOADERS = """
transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_loader = DataLoader(datasets.ImageFolder("data/train", transform=transform), batch_size=4, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", transform=transform), batch_size=4)
SIZES = dict(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
"""
STUDY = """
losses = {}
for rate in (0.05, 0.1):
    candidate, seen = ViT(**SIZES), []
    train_epoch(candidate, optim.SGD(candidate.parameters(), lr=rate), train_loader, [])
    evaluate(candidate, test_loader, seen)
    losses[rate] = sum(seen)
best = min(losses, key=losses.get)
"""
FINAL = """
model = ViT(**SIZES)
optimizer = optim.SGD(model.parameters(), lr=best)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
"""
SCHEDULE = "schedule = optim.lr_scheduler.StepLR(optimizer, each)\nfor epoch"
STOPPING = """
best, model = 0.1, ViT(**SIZES)
optimizer = optim.SGD(model.parameters(), lr=best)
lowest = 1e9
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
    seen = []
    evaluate(model, test_loader, seen)
    if sum(seen) < lowest:
        lowest = sum(seen)
        torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
"""


@pytest.mark.parametrize(
    ("text", "batches"),
    [
        (STUDY + FINAL, 11),  # of four: all 42 images, once the study has chosen
        (
            "each = len(train_loader)" + STUDY + FINAL.replace("for epoch", SCHEDULE),
            10,
        ),  # 39: that stays true
        (STOPPING, 10),  # the last of its loops decides
        ("best = 0.1" + FINAL, 11),  # nothing decides
    ],
    ids=["study", "size", "stopping", "plain"],
)
def test_images_are_kept_for_decisions_as_long_as_there_are_any(
    text: str, batches: int, replayed: Callable[..., Replayed]
) -> None:
    found = replayed(LOADERS + text, made=lambda _, seed=1: images(14, seed))
    assert {len(done.arrays["reported"]) for done in found.epochs} == {batches}
    assert found.end.epochs == 2


BY_KEYWORDS = """
model, first = ViT(**SIZES), ViT(**SIZES)
for epoch in range(3):
    train_epoch(first, optim.SGD(first.parameters(), lr=0.2), train_loader, [])
torch.save(obj=first.state_dict(), f="first.pth")
model.load_state_dict(torch.load(f="first.pth"))
for epoch in range(2):
    train_epoch(model, optim.SGD(model.parameters(), lr=0.1), train_loader, [])
    if epoch == 0:
        torch.save(model.state_dict(), f="best.pth")
model.load_state_dict(state_dict=torch.load(map_location="cpu", f="best.pth"))
torch.save(f="400101204_Lab8_Homework.pth", obj=model.state_dict())
"""


def test_weights_are_saved_and_loaded_by_keywords(replayed: Callable[..., Replayed]) -> None:
    """The training of what is loaded belongs to the script."""
    found = replayed(LOADERS + BY_KEYWORDS)
    assert (found.restored, found.end.other_models, len(found.epochs)) == (True, 0, 5)
    assert not found.program.script.left_alone


TWO_IN_MAIN = """
def fit(model, count):
    history, optimizer = [], optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(count):
        train_epoch(model, optimizer, train_loader, history)
    return history


def compare(one, other):
    print(one[-1] - other[-1])


def main():
    small, seen = ViT(**{**SIZES, "dim": 4}), []
    SMALL
    model = ViT(**SIZES)
    BIG
    torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
    AFTER


main()
"""
FIT = "losses = fit(small, 2)"
AFTERWARDS = {
    # training of another model, of the one that counts, what stands at the end -> how many are trained
    "printed": (FIT, "more = fit(model, 3)", "print(losses[-1] / 2, more[-1])", 1),
    "handed on": (
        FIT,
        "more = fit(model, 3)",
        "half = max(losses) / 2; compare(losses, more); print(half)",
        1,
    ),
    "table": (
        "table = {}; table['small'] = fit(small, 2)",
        "table['big'] = fit(model, 3)",
        "print(table['small'][-1])",
        2,
    ),
    "filled": (
        "optimizer = optim.SGD(small.parameters(), lr=0.1)\n"
        "    for epoch in range(2):\n        train_epoch(small, optimizer, train_loader, seen)\n"
        "    low = min(seen)",
        "fit(model, 3)",
        "if low > 0:\n        return\n    print(low)",
        1,
    ),
    "saved": (
        f"{FIT}; torch.save(small.state_dict(), 'small.pth'); small.load_state_dict(torch.load('small.pth'))",
        "fit(model, 3)",
        "del losses, small",
        1,
    ),
    "returned": (FIT, "fit(model, 3)", "return losses", 1),
    "decides": (FIT, "fit(model, 3 if losses[-1] < 1e9 else 1)", "print(losses[-1])", 2),
    "may end it": (FIT, "if losses[-1] > 1e9:\n        return\n    fit(model, 3)", "print(losses)", 2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", AFTERWARDS)
def test_what_depends_on_what_is_left_alone(case: str, replayed: Callable[..., Replayed]) -> None:
    """It is left alone, too; what decides about the model that counts is executed."""
    first, second, after, trained = AFTERWARDS[case]
    text = TWO_IN_MAIN.replace("SMALL", first).replace("BIG", second).replace("AFTER", after)
    found = replayed(LOADERS + text)
    assert len(found.epochs) == 3
    assert found.end.other_models == trained - 1
    assert len(found.program.script.left_alone) == 2 - trained


def test_a_text_tells_which_side_of_the_data_is_meant() -> None:
    """`loaders[split] = DataLoader(...)` in a loop, or a function of the split."""
    from grader.worker.script_run import GradersData

    data = GradersData({f"{side}_{kind}": (side, kind) for side in ("train", "test") for kind in ("loader",)})
    assert data.of("train_loader", "val") == data.of("train_loader", 3, "data/test") == ("test", "loader")
    assert data.of("test_loader", Path("data/train")) == data.of("train_loader", 4) == ("train", "loader")


MODEL = "model = ViT(image_size=8, patch_size=4, num_classes=3, dim=8, depth=1, heads=1, mlp_dim=8)"
TRAINS = "    train_epoch(model, optimizer, train_loader, [])\n"
PLAIN = (Path(__file__).parent / "styles" / "plain_loop.py").read_text(encoding="utf-8")
BEGINNING = PLAIN.split("N_EPOCHS")[0]
BROKEN = {
    # text instead of the loop -> what it comes to
    f"for epoch in range(2):\n    undefined(epoch)\n{TRAINS}": "loop_raised",
    f"for epoch in range(2):\n    x = 1 / epoch\n{TRAINS}": "loop_raised",
    "N_EPOCHS = 2\n": "nothing_trains",
    f"if len(train_loader.dataset) < 0:\n{TRAINS}": "no_step",
}


@pytest.mark.parametrize("loop", BROKEN)
def test_what_cannot_be_executed_goes_to_a_person(loop: str, replayed: Callable[..., Replayed]) -> None:
    with pytest.raises(StudentRaised) as raised:
        replayed(BEGINNING + loop)
    assert raised.value.gap == BROKEN[loop]


def test_what_reaches_outward_is_nothing(replayed: Callable[..., Replayed]) -> None:
    """Files are not read, and tables are not written: the training goes on without them."""
    noted = f"table = open('table.csv')\nfor epoch in range(2):\n{TRAINS}    table[epoch] = table.read()\n"
    assert len(replayed(BEGINNING + noted).epochs) == 2


def test_a_notebook_whose_cells_were_run_again(
    replayed: Callable[..., Replayed], as_notebook: Callable[..., Program]
) -> None:
    """What stands there counts, in the order of the cells: the second model, the last number of epochs."""
    cells = [
        (7, HEAD),
        (3, BEGINNING + "N_EPOCHS = 1\n"),
        (12, f"for epoch in range(N_EPOCHS):\n{TRAINS}"),
        (9, f"N_EPOCHS = 3\n{MODEL}"),
        (10, "optimizer = optim.SGD(model.parameters(), lr=0.5)"),
        (11, f"for epoch in range(N_EPOCHS):\n{TRAINS}    print('epoch', epoch)\n"),
    ]
    read = as_notebook(cells, {11: "epoch 0\nepoch 1\nepoch 2\nTest accuracy: 71.0%"})
    found = replayed(read)
    assert [done.learning_rate for done in found.epochs] == pytest.approx([0.5, 0.5, 0.5])
    assert found.plan.optimizer == "SGD" and found.plan.epochs == 3
    assert read.claim is not None and read.claim.accuracy == 0.71


def test_a_loop_that_breaks_off_goes_to_a_person(replayed: Callable[..., Replayed]) -> None:
    """After an epoch, and outside of train_epoch, it may be us who left something out."""
    with pytest.raises(StudentRaised, match="ZeroDivisionError") as raised:
        replayed(
            BEGINNING
            + "for epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [])\n    1 / 0\n"
        )
    assert raised.value.gap == "loop_raised"


LEFT_OUT = """
import requests

def best():
    return requests.get("https://example.org/best")

def evaluate(model, data_loader, loss_history):
    answer = best()
    print(f"{answer:.3f}")
    loss_history.append(float(answer))

for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
    evaluate(model, test_loader, [])
"""


def test_computing_with_what_was_left_out_goes_to_a_person(replayed: Callable[..., Replayed]) -> None:
    """In a graded function, too; writing it anywhere is no fault at all."""
    with pytest.raises(StudentRaised, match="NothingThereError") as raised:
        replayed(BEGINNING + LEFT_OUT)
    assert raised.value.gap == "loop_raised"
    found = replayed(BEGINNING + LEFT_OUT.replace("float(answer)", "str(answer)"))
    assert len(found.epochs) == 2


def test_a_train_epoch_that_raises_is_the_students(replayed: Callable[..., Replayed]) -> None:
    """In the second epoch too."""
    broken = "class Broken(list):\n    def append(self, value):\n        raise KeyError('no')\n"
    loop = (
        "for epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [Broken(), []][epoch < 1])\n"
    )
    with pytest.raises(StudentRaised, match="KeyError") as raised:
        replayed(BEGINNING + broken + loop)
    assert raised.value.gap == ""


def test_hidden_images_are_never_validated_on(replayed: Callable[..., Replayed]) -> None:
    """A tenth of the training images is kept aside where the loop decides by them; else a few are shown."""
    loop = """
seen = []
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
    seen = [len(train_loader.dataset), len(test_loader.dataset)]
    losses = []
    evaluate(model, test_loader, losses)
    if losses[0] < -1:
        break
    optimizer.param_groups[0]["lr"] = seen[0] + seen[1] / 100
"""
    found = replayed(BEGINNING + loop)
    assert [done.learning_rate for done in found.epochs] == pytest.approx([0.1, 33.03])
    without = loop.replace("    if losses[0] < -1:\n        break\n", "")
    found = replayed(BEGINNING + without)
    assert [done.learning_rate for done in found.epochs] == pytest.approx([0.1, 36.03])


def test_measuring_leaves_the_students_random_numbers_alone(replayed: Callable[..., Replayed]) -> None:
    """What is drawn after an epoch is what it would be without us; the test transform draws as well."""
    chance = "transforms.Compose([transform, lambda x: x + torch.rand(1)])"
    text = BEGINNING.replace('"data/test", transform=transform', f'"data/test", transform={chance}')
    loop = f"torch.manual_seed(5)\nfor epoch in range(3):\n{TRAINS}"
    draws = (
        "    if epoch < 1: torch.manual_seed(0)\n"
        "    else: optimizer.param_groups[0]['lr'] = torch.rand(1).item()\n"
    )
    rates = [done.learning_rate for done in replayed(text + loop + draws).epochs]
    expected = torch.rand(1, generator=torch.Generator().manual_seed(0)).item()
    assert rates == pytest.approx([0.1, 0.1, expected])


def test_losses_belong_to_their_epoch(replayed: Callable[..., Replayed]) -> None:
    """Also where train_epoch reports them at its end, by what it returns."""
    own = """
def train_epoch(model, optimizer, data_loader, loss_history):
    for images, labels in data_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return optimizer.param_groups[0]["lr"]


"""
    loop = f"for epoch in range(3):\n{TRAINS}    optimizer.param_groups[0]['lr'] /= 2\n"
    found = replayed(own + BEGINNING + loop)
    assert [done.arrays["reported"].tolist() for done in found.epochs] == [[0.1], [0.05], [0.025]]


def test_color_stays_color(replayed: Callable[..., Replayed]) -> None:
    """Without a resize and without a gray step, colors are what is learned."""
    found = replayed(
        """
train_set = datasets.ImageFolder("data/train", transforms.ToTensor())
train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=3, dim=16, depth=1, heads=1, mlp_dim=8)
optimizer = optim.Adam(model.parameters(), lr=0.02)
for epoch in range(6):
    train_epoch(model, optimizer, train_loader, [])
""",
        made=colored_images,
    )
    labels = colored_images(4, seed=2)[1]
    assert (found.end.arrays["logits"].argmax(axis=1) == labels).mean() == 1
