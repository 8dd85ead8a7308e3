"""What a training uses of forbidden parts is told, wherever in it they are used."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grader.domain.analyzed_program import TRAINING, Program
from grader.domain.assignment import Assignment
from grader.domain.evidence import TrainingOutcome
from grader.domain.limits import Limits
from grader.domain.program_run import Prying, Watched
from grader.kit.splits import Splits
from grader.protocol.link import WorkerProcess
from grader.training import Job, Measured, measured_training, repeated_training

HEAD = """
import torch
import torchvision
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

def hidden(module, start):
    return next(value for name, value in list(vars(module).items()) if name.startswith(start))

transform = transforms.Compose([transforms.Grayscale(1), {transform}transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)


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


def finished(model):
    {helper}
    return model


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
    model = finished(model)
"""
OTHER = "hidden(torchvision.models.vision_transformer, 'VisionT')"
MADE = (
    f"{OTHER}(image_size=8, patch_size=4, num_layers=1, num_heads=1, hidden_dim=8, mlp_dim=8, num_classes=3)"
)
PART = "torchvision.models.vision_transformer.VisionTransformer"


@pytest.fixture(scope="module")
def splits() -> Splits:
    """Three classes of noise."""
    random, labels = np.random.default_rng(3), np.repeat(np.arange(3), 4).astype(np.int64)
    images, names = random.integers(0, 255, (12, 8, 8)).astype(np.uint8), tuple(map(str, range(12)))
    return Splits("noise", ("a", "b", "c"), images, labels, names, images, labels, names)


@pytest.fixture
def measured(
    spawn: Callable[[], WorkerProcess],
    analyzed: Callable[[str], Program],
    splits: Splits,
    assignment: Assignment,
) -> Callable[..., Measured]:
    """What is measured of a homework's text."""

    def measure(*, helper: str = "pass", transform: str = "", runs: int = 1) -> Measured:
        text = HEAD.format(helper="\n    ".join(helper.split("\n")), transform=transform)
        job = Job(analyzed(text), Limits(), assignment.forbidden_patterns, seed=3, splits=splits)
        if runs > 1:
            return repeated_training(spawn, lambda number: replace(job, seed=2 + number), None, runs=runs)
        return measured_training(spawn, job)

    return measure


def used(found: Measured) -> set[tuple[str, str, Any]]:
    """(part, stage, line) of all that was used, but for what parts use inside."""
    assert found.training.outcome is TrainingOutcome.COMPLETED, found.training.reason
    return {
        (part.name, part.stage, part.place.line if part.place else None)
        for part in found.watched.reached
        if not part.inside
    }


def line_of(word: str, text: str) -> int:
    return text[: text.index(word)].count("\n") + 1


def test_a_part_that_the_loop_uses_is_told_with_its_line(measured: Any) -> None:
    found = measured(helper=f"{MADE}(torch.zeros(1, 3, 8, 8))")
    assert used(found) == {(PART, TRAINING, line_of("{helper}", HEAD))}
    assert found.watched.unproven == ()


def test_a_part_that_a_transform_uses_is_told(measured: Any) -> None:
    found = measured(transform=f"transforms.Lambda(lambda image: image if {OTHER} else {MADE}), ")
    assert used(found) == set()
    found = measured(transform=f"transforms.Lambda(lambda image: ({MADE}, image)[1]), ")
    assert used(found) == {(PART, TRAINING, line_of("{transform}", HEAD))}


def test_every_run_of_a_training_counts(measured: Any) -> None:
    """What is used only in the second run, with another seed, is told as well."""
    found = measured(helper=f"torch.initial_seed() == 4 and {MADE}", runs=2)
    assert found.training.runs and used(found) == {(PART, TRAINING, line_of("{helper}", HEAD))}


def test_a_watch_that_the_training_disturbs_is_noticed(measured: Any) -> None:
    found = measured(helper="vars(F)['scaled_dot_product_' + 'attention'] = None")
    assert found.watched.unproven == (TRAINING,)


def test_where_the_training_pries_is_told(measured: Any) -> None:
    found = measured(helper="import gc\nlen(gc.get_objects())")
    assert {(pried.kind, pried.stage) for pried in found.watched.pried} == {(Prying.OBJECTS, TRAINING)}


def test_an_honest_training_is_watched_and_nothing_is_told(measured: Any) -> None:
    assert measured().watched == Watched()
