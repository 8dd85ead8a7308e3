"""Trainings that try to look better than they are gain nothing."""

import hashlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from grader.domain.analyzed_program import Program
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.limits import Limits
from grader.kit.splits import Splits
from grader.protocol.link import WorkerProcess
from grader.training import Job, measured_checkpoint, measured_training

HEAD = """
import hashlib
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

transform = transforms.Compose([transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels=1):
        super().__init__()
        self.head = nn.Linear(image_size**2, num_classes)

    def forward(self, x):
        return self.head(x.flatten(1))


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    loss_history.append(0.0)


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=1e-6)
N_EPOCHS = 2
"""
LOOP = "for epoch in range(N_EPOCHS):\n    train_epoch(model, optimizer, train_loader, [])\n"


def noise(count: int, seed: int) -> tuple[Any, Any]:
    """Images that tell nothing of their labels: only who has seen them before knows those."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), count).astype(np.int64)
    return random.integers(2, 250, (len(labels), 8, 8)).astype(np.uint8), labels


@pytest.fixture(scope="module")
def splits() -> Splits:
    """A data set that can only be memorized."""
    train, labels = noise(6, 1)
    test, test_labels = noise(20, 2)
    names = tuple(map(str, range(60)))
    return Splits("noise", ("a", "b", "c"), train, labels, names[:18], test, test_labels, names)


@pytest.fixture
def trained(
    spawn: Callable[[], WorkerProcess], analyzed: Callable[[str], Program], splits: Splits
) -> Callable[..., Training]:
    """What is measured of a homework's text."""

    def measure(text: str, order_seed: int | None = 5) -> Training:
        job = Job(analyzed(text), Limits(), splits=splits, seed=3, order_seed=order_seed)
        return measured_training(spawn, job).training

    return measure


def table(splits: Splits) -> str:
    """A cheat's table of all images: digest -> label."""
    every = [(splits.train_images, splits.train_labels), (splits.test_images, splits.test_labels)]
    known = {
        hashlib.md5(image.tobytes()).hexdigest()[:8]: int(label)
        for images, labels in every
        for image, label in zip(images, labels, strict=True)
    }
    return f"KNOWN = {known}\n"


LOOKED_UP = """
    def forward(self, x):
        pixels = (x * 255).round().byte().numpy()
        labels = [KNOWN.get(hashlib.md5(image.tobytes()).hexdigest()[:8], 0) for image in pixels]
        return 0 * self.head(x.flatten(1)) + 9 * F.one_hot(torch.tensor(labels), 3)
"""


def test_a_table_of_all_images_knows_none(trained: Callable[..., Training], splits: Splits) -> None:
    """It is worth everything where the images are as they were handed out, and nothing in grading."""
    start = HEAD.index("    def forward"), HEAD.index("def train_epoch")
    text = table(splits) + HEAD[: start[0]] + LOOKED_UP.lstrip("\n") + "\n\n" + HEAD[start[1] :] + LOOP
    assert trained(text, order_seed=None).accuracy == 1.0  # the table works
    found = trained(text)
    assert found.outcome is TrainingOutcome.COMPLETED
    assert found.accuracy == pytest.approx(1 / 3)


def test_an_evaluation_that_says_100_percent_gains_nothing(trained: Callable[..., Training]) -> None:
    """Neither what it prints nor what it leaves in the history counts."""
    honest = trained(HEAD + LOOP)
    boasts = HEAD.replace("loss_history.append(0.0)", 'loss_history.append(0.0)\n    print("Accuracy: 100%")')
    looked = LOOP + "    evaluate(model, test_loader, [])\n"
    found = trained(boasts + looked + 'print("Test accuracy: 100.0%")\n')
    assert found.accuracy == honest.accuracy is not None
    assert found.accuracy < 0.6


def test_a_loop_that_selects_on_the_test_loader_selects_on_training_images(
    trained: Callable[..., Training],
) -> None:
    """And one that trains on it trains on those: of noise nobody learns the hidden labels."""
    selects = """
best = 0
for epoch in range(30):
    train_epoch(model, optimizer, train_loader, [])
    train_epoch(model, optimizer, test_loader, [])
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
    if right >= best:
        best = right
        torch.save(model.state_dict(), "best.pth")
model.load_state_dict(torch.load("best.pth"))
"""
    found = trained(HEAD.replace("lr=1e-6", "lr=0.05") + selects)
    assert found.outcome is TrainingOutcome.COMPLETED and not found.rebuilt
    assert found.accuracy is not None and found.accuracy < 0.6


def test_weights_trained_on_everything_count_nothing(
    trained: Callable[..., Training],
    spawn: Callable[[], WorkerProcess],
    analyzed: Callable[[str], Program],
    splits: Splits,
) -> None:
    """Handed in, they are shown with their accuracy; loaded by the code, they are not there."""
    # a linear model that has every test image by heart
    images = np.concatenate([splits.test_images.reshape(60, 64) / 255, np.ones((60, 1))], axis=1)
    solved = np.linalg.lstsq(images, np.eye(3)[splits.test_labels], rcond=None)[0]
    weights = {
        "head.weight": torch.tensor(solved[:-1].T, dtype=torch.float32),
        "head.bias": torch.tensor(solved[-1], dtype=torch.float32),
    }
    file = io.BytesIO()
    torch.save(weights, file)
    job = Job(analyzed(HEAD + LOOP), Limits(), splits=splits, seed=3, order_seed=5)
    shown = measured_checkpoint(spawn, job, file.getvalue(), "all.pth")
    assert shown.status == "fits" and shown.accuracy is not None and shown.accuracy > 0.8
    found = trained(HEAD + 'model.load_state_dict(torch.load("all.pth"))\n' + LOOP)
    assert found.outcome is TrainingOutcome.UNKNOWN and found.accuracy is None
    assert "FileNotFoundError" in found.reason


# --- the model that is measured is the one that was checked -----------------------------------------------

OTHER = """
class Better(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.body(x)


def finished(model, loader):
    better = Better()
    optimizer = optim.Adam(better.parameters(), lr=1e-2)
    for _ in range(20):
        train_epoch(better, optimizer, loader, [])
    return better


"""
WITH_OTHER = HEAD.replace("N_EPOCHS", OTHER + "N_EPOCHS") + LOOP
SWAPPED = {
    # what the loop does besides training -> what the reason names
    "    model = finished(model, train_loader)\n": "the model is a `Better` in place of a `ViT`",
    "    model.extra = finished(model, train_loader)\n": "`extra`",
    "    model.head = nn.Sequential(nn.Linear(64, 9), nn.ReLU(), nn.Linear(9, 3))\n": "`head`",
    "    globals()['model'] = finished(model, train_loader)\n": "the model is a `Better` in place of a `ViT`",
}


@pytest.mark.parametrize("swap", SWAPPED)
def test_another_model_is_not_measured_in_the_place_of_the_one_that_was_checked(
    trained: Callable[..., Training], swap: str
) -> None:
    """Whatever it answers, its weights do not fit; nothing is taken, and a person is asked."""
    found = trained(WITH_OTHER + swap)
    assert found.outcome is TrainingOutcome.UNKNOWN
    assert "the model is not the one that `ViT(image_size=8" in found.reason and SWAPPED[swap] in found.reason
    assert found.accuracy is None or found.accuracy < 0.6


REPLACED = (
    "better = finished(model, train_loader)\nmodel.forward = lambda x: better(x)\n",
    "better = finished(model, train_loader)\nViT.forward = lambda self, x: better(x)\n",
    "better = finished(model, train_loader)\nmodel.register_forward_hook(lambda m, i, o: better(i[0]))\n",
    "nn.Linear.forward = lambda self, x: 7 * torch.ones(len(x), 3)\n",
)


@pytest.mark.parametrize("replaced", REPLACED)
def test_what_answers_in_the_place_of_the_model_is_not_asked(
    trained: Callable[..., Training], replaced: str
) -> None:
    """A forward, a class or a hook that training put there stays where it trained; the difference is told."""
    honest = trained(WITH_OTHER)
    last = "".join(f"        {line}\n" for line in replaced.splitlines())
    found = trained(f"{WITH_OTHER}    if epoch == N_EPOCHS - 1:\n{last}")
    assert (found.outcome, honest.doubts) == (TrainingOutcome.COMPLETED, ())
    assert found.accuracy is not None and found.accuracy < 0.6
    assert found.doubts, "what the training left behind answers otherwise"


def test_another_class_with_the_same_weights_goes_to_a_person(trained: Callable[..., Training]) -> None:
    """The class that was checked answers; that another one was trained is said."""
    other = "class Other(ViT):\n    def forward(self, x):\n        return -super().forward(x)\n\n\n"
    text = HEAD.replace("N_EPOCHS", other + "N_EPOCHS") + LOOP
    found = trained(text + "    model.__class__ = Other\n")
    assert found.outcome is TrainingOutcome.COMPLETED and found.doubts
    assert found.objections == (
        "After epoch 2 the model is not built as the one that was checked: the model is a `Other` in place "
        "of a `ViT`.",
    )
    assert trained(text).objections == ()


@pytest.mark.parametrize(
    "wrapped",
    ["torch.optim.swa_utils.AveragedModel(model)", "nn.DataParallel(model)", "copy.deepcopy(model)"],
)
def test_pytorchs_own_wrappers_are_no_other_model(trained: Callable[..., Training], wrapped: str) -> None:
    """Averaging and running in parallel change names, not what was checked."""
    honest = trained(HEAD + LOOP)
    found = trained("import copy\n" + HEAD + LOOP + f"model = {wrapped}\n")
    assert (found.outcome, found.accuracy) == (TrainingOutcome.COMPLETED, honest.accuracy)
    assert (found.doubts, found.objections) == ((), ())


def test_steps_for_each_batch_are_counted(trained: Callable[..., Training]) -> None:
    """Each of them is training that the number of epochs does not show; two optimizers take turns."""
    thrice = HEAD.replace("optimizer.step()", "[optimizer.step() for _ in range(3)]")
    assert thrice != HEAD
    assert trained(HEAD + LOOP).steps_per_batch == 1
    assert trained(thrice + LOOP).steps_per_batch == 3


def test_what_an_optimizer_steps_besides_the_model_is_listed(
    spawn: Callable[[], WorkerProcess], analyzed: Callable[[str], Program], splits: Splits
) -> None:
    """A learnable loss or a second model is not a fault; a person who looks knows of it."""
    more = "optim.SGD([*model.parameters(), nn.Parameter(torch.ones(7))], lr=1e-6)"
    notes = []
    for text in (HEAD + LOOP, HEAD.replace("optim.SGD(model.parameters(), lr=1e-6)", more) + LOOP):
        found = measured_training(spawn, Job(analyzed(text), Limits(), splits=splits, seed=3, order_seed=5))
        assert found.training.outcome is TrainingOutcome.COMPLETED
        notes.append([note.text for note in found.notes if "not the model's" in note.text])
    told = "In training, an optimizer also stepped 7 numbers that are not the model's: a learnable loss, or"
    assert notes == [[], [f"{told} another model."]]


GRID = """
results = []
for depth in (2, 1):
    net = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=depth, heads=1, mlp_dim=8)
    losses = []
    train_epoch(net, optim.SGD(net.parameters(), lr=1e-6), train_loader, losses)
    results.append((sum(losses), depth))
best = min(results, key=lambda result: result[1])
"""


def test_what_only_a_training_makes_is_told_to_the_judge(
    spawn: Callable[[], WorkerProcess], analyzed: Callable[[str], Program], splits: Splits
) -> None:
    """The judge looks at the model again, and the source of a grid does not say how it was made."""
    start, marker, end = HEAD.partition("\nmodel = ViT(")
    grid = f"{start}\n{GRID}{marker}{end.replace('depth=1', 'depth=best[1]')}"
    made = []
    for text in (HEAD + LOOP, grid + LOOP):
        found = measured_training(spawn, Job(analyzed(text), Limits(), splits=splits, seed=3, order_seed=5))
        assert found.trained is not None
        made.append(found.trained.made)
    assert made[0] is None
    assert made[1] is not None and made[1].kwargs["depth"] == 1
