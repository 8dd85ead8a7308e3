"""The small pretrained model of `vit_finetune`, made again: `make pretrained`.

It is trained on the twenty classes of `synthetic_objects` that the assignment never uses, and written without
its head. One thread, so that the sums are in one order: the same processor gives the same file, and another
one a model that is as good. After two epochs it tells 60 % of its own training images apart.

On ten other classes with 20 images each, three seeds: fine-tuned 72 %, its head alone 76 %, from scratch
53 %. What the assignment's own `fit` makes of it is measured by `python -m benchmarks finetuning`.

    python -m benchmarks.pretrained             writes reference/vit_finetune/provided/tiny_vit.safetensors
    python -m benchmarks.pretrained --compare   what it gives: fine-tuned, by its head alone, and from scratch
"""

import argparse
import ast
import hashlib
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from datasets.synthetic_objects import CLASSES, OTHERS, made_images

FOLDER = Path(__file__).parents[1] / "reference" / "vit_finetune"
WEIGHTS = FOLDER / "provided" / "tiny_vit.safetensors"
IMPORTED = "from handout import build_model, parts\n"

SEED = 20_26  # of the images and of the weights; that of no term
PER_CLASS = 600
EPOCHS = 2
BATCH = 64
RATE, DECAY, WARMUP = 1.5e-3, 0.05, 0.1  # of AdamW; the warm-up as a share of all steps


def definitions() -> dict[str, Any]:
    """The imports, functions and classes of the assignment's solution, with those that are handed out."""
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    source = with_handout((FOLDER / "solution.py").read_text(encoding="utf-8"))
    body = [node for node in ast.parse(source).body if isinstance(node, kept)]
    names: dict[str, Any] = {"print": lambda *_: None}
    exec(compile(ast.Module(body, []), "solution.py", "exec"), names)  # noqa: S102 - the course's own
    return names


def with_handout(homework: str) -> str:
    """A homework with the code that is handed out in the place of its import."""
    return homework.replace(IMPORTED, (FOLDER / "provided" / "handout.py").read_text(encoding="utf-8"), 1)


def standardized(images: NDArray[np.uint8]) -> Tensor:
    """Images, float32 (n, 3, 32, 32) of mean 0 and deviation 1 in each channel."""
    values = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    mean, deviation = values.mean((0, 2, 3), keepdim=True), values.std((0, 2, 3), keepdim=True)
    return (values - mean) / deviation


def tensors(classes: tuple[str, ...], per_class: int, seed: int) -> tuple[Tensor, Tensor]:
    """Synthetic images as they are trained on, and labels."""
    data = made_images(seed, classes=classes, per_class=per_class)
    return standardized(data.images), torch.from_numpy(data.labels)


class Training:
    """AdamW with a warm-up and half a cosine, epoch by epoch, which can be kept and gone on with.

    Attributes:
        epoch: How many are done.
    """

    def __init__(self, model: nn.Module, count: int, epochs: int, rate: float, seed: int) -> None:
        """Nothing is trained yet.

        Args:
            count: Of the images.
        """
        self.epoch, self._model, self._count = 0, model, count
        self._random = torch.Generator().manual_seed(seed)
        learning = [weights for weights in model.parameters() if weights.requires_grad]
        self._optimizer = torch.optim.AdamW(learning, lr=rate, weight_decay=DECAY)
        steps = epochs * math.ceil(count / BATCH)
        warm = WARMUP * steps

        def share(step: int) -> float:
            return (
                step / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / (steps - warm))
            )

        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, share)

    def one_epoch(self, batch: Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor]]) -> float:
        """The share that was right.

        Args:
            batch: (rows, random numbers) -> images and labels.
        """
        hits = 0
        for rows in torch.randperm(self._count, generator=self._random).split(BATCH):
            images, labels = batch(rows, self._random)
            scores = self._model(images)
            loss = nn.functional.cross_entropy(scores, labels, label_smoothing=0.1)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            hits += int((scores.argmax(1) == labels).sum())
        self.epoch += 1
        return hits / self._count

    def keep(self, path: Path) -> None:
        """Write all that is needed to go on, in one piece."""
        parts = (self._model.state_dict(), self._optimizer.state_dict(), self._schedule.state_dict())
        fresh = path.with_suffix(".new")
        torch.save((self.epoch, *parts, self._random.get_state()), fresh)
        fresh.replace(path)

    def resume(self, path: Path) -> None:
        """Go on where the file's training was, if there is one."""
        if path.exists():
            self.epoch, model, optimizer, schedule, random = torch.load(path, weights_only=True)
            self._model.load_state_dict(model)
            self._optimizer.load_state_dict(optimizer)
            self._schedule.load_state_dict(schedule)
            self._random.set_state(random)


def trained(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epochs: int,
    rate: float,
    seed: int,
    *,
    say: bool = False,
) -> nn.Module:
    """The model after a training in which images are mirrored at random."""
    training = Training(model, len(images), epochs, rate, seed)

    def batch(rows: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
        mirrored = torch.rand(len(rows), 1, 1, 1, generator=random) < 0.5
        return torch.where(mirrored, images[rows].flip(-1), images[rows]), labels[rows]

    while training.epoch < epochs:
        share = training.one_epoch(batch)
        if say:
            sys.stdout.write(f"epoch {training.epoch} of {epochs}: {share:.4f}\n")
            sys.stdout.flush()
    return model


def without_head(model: nn.Module) -> dict[str, Tensor]:
    """The weights without those of the head."""
    return {name: value for name, value in model.state_dict().items() if not name.startswith("head")}


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images whose class has the largest score."""
    batches = zip(images.split(256), labels.split(256), strict=True)
    hits = sum(int((model(some).argmax(1) == own).sum()) for some, own in batches)
    return hits / len(images)


def made(names: dict[str, Any], seed: int = SEED) -> dict[str, Tensor]:
    """The weights without those of the head."""
    torch.manual_seed(seed)
    images, labels = tensors(OTHERS, PER_CLASS, seed)
    model = names["VisionTransformer"](len(OTHERS))
    trained(model, images, labels, EPOCHS, RATE, seed, say=True)
    return without_head(model)


def compared(names: dict[str, Any], seeds: int = 3) -> dict[str, list[float]]:
    """Accuracies on ten new classes after training on 20 images of each: of three ways, for each seed."""
    found: dict[str, list[float]] = {"fine-tuned": [], "its head alone": [], "from scratch": []}
    state = load_file(WEIGHTS)
    for seed in range(seeds):
        images, labels = tensors(CLASSES, 20, 1000 + seed)
        hidden = tensors(CLASSES, 100, 2000 + seed)
        for way, accuracies in found.items():
            torch.manual_seed(seed)
            model = names["VisionTransformer"](len(CLASSES))
            if way != "from scratch":
                model.load_state_dict(state, strict=False)
            if way == "its head alone":
                model.requires_grad_(False).head.requires_grad_(True)
            rate = {"fine-tuned": 3e-4, "its head alone": 1e-2, "from scratch": 1e-3}[way]
            trained(model, images, labels, 40, rate, seed)
            accuracies.append(accuracy(model, *hidden))
    return found


def main() -> None:
    """Make the file, or compare what it gives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--compare", action="store_true", help="train with the file that is there")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    started, names = time.monotonic(), definitions()
    if wanted.compare:
        for way, accuracies in compared(names).items():
            told = ", ".join(f"{each:.3f}" for each in accuracies)
            sys.stdout.write(f"{way}: {statistics.mean(accuracies):.3f} ({told})\n")
    else:
        WEIGHTS.parent.mkdir(exist_ok=True)
        save_file(made(names), WEIGHTS)
        digest = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
        sys.stdout.write(f'"{WEIGHTS.name}" = "{digest}"\n')
    sys.stdout.write(f"{time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
