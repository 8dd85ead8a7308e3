"""Workers with a homework loaded, and a tiny homework that trains in no time."""

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grader.domain.analyzed_program import Place, Program, Recipe, Script, Statement
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, WorkerProcess
from grader.protocol.replies import CheckpointLoaded, EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import Load, LoadCheckpoint, Train
from grader.protocol.worker_reports import WatchRecord

LIMIT = FrameLimit()
CLASSES = ("low", "middle", "high")

TINY = """
    import torch
    from torch import nn, optim
    from torchvision import transforms

    class ViT(nn.Module):
        def __init__(self, num_classes=3):
            super().__init__()
            self.head = nn.Linear(64, num_classes)

        def forward(self, img):
            return self.head(img.flatten(1))

    def train_epoch(model, optimizer, data_loader, loss_history):
        for images, labels in data_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            loss_history.append(loss.item())

    transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(), transforms.ToTensor()])
    """
RECIPE = Recipe(model="ViT()", train_transform="transform", test_transform="transform", batch_size="4")
SCRIPT = """
history = []
model = {model}
optimizer = {optimizer}
for epoch in _epochs(range({epochs})):
    train_epoch(model, optimizer, train_loader, history)
"""
PARTS = {"model": "ViT()", "optimizer": "optim.SGD(model.parameters(), lr=0.5)", "epochs": "2"}


def tiny_images(count: int, *, channels: int = 1, size: int = 8, seed: int = 1) -> tuple[Any, Any]:
    """Images uint8 whose brightness is their class, and labels int64, `count` of each of three classes."""
    labels = np.repeat(np.arange(3), count)
    shape = (len(labels), size, size) + ((3,) if channels == 3 else ())
    noise = np.random.default_rng(seed).integers(0, 60, shape)
    bright = labels.reshape(-1, *[1] * (len(shape) - 1)) * 90
    return (noise + bright).astype(np.uint8), labels.astype(np.int64)


class Homework:
    """A worker that has a homework loaded.

    Attributes:
        link: The conversation with it.
        program: What it has loaded.
        loaded: Its reply to Load.
    """

    def __init__(
        self, process: WorkerProcess, program: Program, load: Load, measuring: Callable[..., Any]
    ) -> None:
        self.link = Link(process, WatchRecord(load.forbidden, tuple(program.source or {})))
        self.program = program
        self._load = load
        self._measuring = measuring
        self.loaded = self.ask(load, Loaded)
        self.link.watch.stage = "later"

    @property
    def reached(self) -> dict[str, tuple[str, ...]]:
        """The forbidden parts that the student's code used, with the patterns that they fall under."""
        return {part.name: part.patterns for part in self.link.watch.watched.reached if not part.inside}

    def ask(self, request: Any, reply: Any) -> Any:
        """The reply to a request, within twenty seconds."""
        return self.link.ask(request, reply, seconds=20, limit=LIMIT)

    def trained(self, **changes: Any) -> tuple[TrainingPlan, list[EpochDone]]:
        """The plan and the epochs of a training on tiny images, measured by a worker beside this one."""
        train, labels = tiny_images(4)
        test = changes.pop("test_images", tiny_images(3, seed=2)[0])
        arrays = {"train_images": train, "train_labels": labels}
        request = Train(**{"class_names": CLASSES, "seed": 3, "arrays": arrays, **changes})
        replies: list[Any] = []
        for reply in self.link.conversation(
            request, (TrainingPlan, EpochDone, Trained), seconds=20, limit=LIMIT
        ):
            replies.append(reply)
            if isinstance(reply, Trained):
                break
        plan, *epochs, end = replies
        assert isinstance(plan, TrainingPlan)
        assert isinstance(end, Trained) and end.epochs == len(epochs)
        beside = self._measuring(self._load, request, test)
        measured = [beside.measured(epoch) for epoch in epochs]
        beside.measured(end)
        return plan, measured

    def checkpoint(self, data: bytes, **changes: Any) -> CheckpointLoaded:
        """What becomes of a checkpoint."""
        images = tiny_images(3, seed=2)[0]
        arrays = {"file": np.frombuffer(data, dtype=np.uint8), "glimpse": images, "test_images": images}
        found: CheckpointLoaded = self.ask(LoadCheckpoint(**changes, arrays=arrays), CheckpointLoaded)
        return found


@pytest.fixture
def load(
    spawn: Callable[[], WorkerProcess], analyzed: Callable[[str], Program], measuring: Callable[..., Any]
) -> Iterator[Callable[..., Homework]]:
    """Load a homework, given by its text or its program, in a new worker; changes are to the program."""
    started: list[WorkerProcess] = []

    def started_with(text: str | Program, *, forbidden: tuple[str, ...] = (), **changes: Any) -> Homework:
        program = analyzed(textwrap.dedent(text)) if isinstance(text, str) else text
        started.append(spawn())
        program = replace(program, **changes)
        return Homework(started[-1], program, Load(program, forbidden, CLASSES, 7), measuring)

    yield started_with
    for process in started:
        process.close()


@pytest.fixture
def tiny(load: Callable[..., Homework]) -> Callable[..., Homework]:
    """The tiny homework with some text after it, one change to its own, and changes to how it is trained.

    `script` is the text of the training script, in which `model`, `optimizer` and `epochs` stand for those.
    """

    def with_more(
        more: str = "",
        *,
        roles: dict[str, str] | None = None,
        tuned: Any = (),
        change: tuple[str, str] = ("", ""),
        script: str = SCRIPT,
        final: str = "model",
        **parts: Any,
    ) -> Homework:
        made = {name: parts.pop(name, default) for name, default in PARTS.items()}
        lines = textwrap.dedent(script).format(**made).strip("\n")
        text = textwrap.dedent(TINY).replace(*change) + textwrap.dedent(more)
        place = Place("homework.py", 1)
        program = Program(
            "homework.py",
            (Statement(text, place, (), "definition"),),
            defined=dict.fromkeys(("ViT", "train_epoch"), place),
            roles=roles or {},
            tuned=tuned,
            recipe=replace(RECIPE, model=made["model"], **parts),
            script=Script(
                statements=(Statement(lines, Place("homework.py", 200), (), "needed"),),
                final=final,
                model=final,
                model_class="ViT",
                trainer="train_epoch",
                data={"train_loader": "train_loader", "test_loader": "test_loader"} | (roles or {}),
                single=True,
            ),
            source={"homework.py": text},
        )
        return load(program)

    return with_more
