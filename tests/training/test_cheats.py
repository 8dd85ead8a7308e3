"""Trainings that try to look better than they are gain nothing."""

import hashlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from grader.domain.assignment import Limits
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.program import Program
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
        job = Job(analyzed(text), splits, Limits(), seed=3, order_seed=order_seed)
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
    job = Job(analyzed(HEAD + LOOP), splits, Limits(), seed=3, order_seed=5)
    shown = measured_checkpoint(spawn, job, file.getvalue(), "all.pth")
    assert shown.status == "fits" and shown.accuracy is not None and shown.accuracy > 0.8
    honest = trained(HEAD + LOOP)
    found = trained(HEAD + 'model.load_state_dict(torch.load("all.pth"))\n' + LOOP)
    assert found.accuracy == honest.accuracy
