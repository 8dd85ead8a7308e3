"""A training in this process that is kept after any epoch, and goes on there as if nothing had been."""

import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from grader.domain.errors import EngineError

WARMUP = 0.1  # of the learning rate, as a share of all steps
SMOOTHING = 0.1  # of the labels


class Training:
    """AdamW with a warm-up and half a cosine, epoch by epoch, which can be kept and gone on with.

    Attributes:
        epoch: How many are done.
        seconds: That they took.
        cpu_seconds: That this process computed meanwhile.
    """

    def __init__(
        self,
        model: nn.Module,
        count: int,
        epochs: int,
        rate: float,
        seed: int,
        *,
        batch_size: int = 64,
        decay: float = 0.05,
        smoothing: float = SMOOTHING,
    ) -> None:
        """Nothing is trained yet.

        Args:
            count: Of the images.
        """
        self.epoch, self.seconds, self.cpu_seconds = 0, 0.0, 0.0
        self._model, self._count, self._batch_size, self._smoothing = model, count, batch_size, smoothing
        self._random = torch.Generator().manual_seed(seed)
        learning = [weights for weights in model.parameters() if weights.requires_grad]
        self._optimizer = torch.optim.AdamW(learning, lr=rate, weight_decay=decay)
        steps = epochs * math.ceil(count / batch_size)
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
        hits, began, began_computing = 0, time.monotonic(), time.process_time()
        self._model.train()
        for rows in torch.randperm(self._count, generator=self._random).split(self._batch_size):
            images, labels = batch(rows, self._random)
            scores = self._model(images)
            loss = nn.functional.cross_entropy(scores, labels, label_smoothing=self._smoothing)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self._schedule.step()
            hits += int((scores.argmax(1) == labels).sum())
        self.epoch += 1
        self.seconds += time.monotonic() - began
        self.cpu_seconds += time.process_time() - began_computing
        return hits / self._count

    def keep(self, path: Path) -> None:
        """Write all that is needed to go on, in one piece."""
        state = {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
            "random": self._random.get_state(),
        }
        fresh = path.with_suffix(".new")
        torch.save(state, fresh)
        fresh.replace(path)

    def resume(self, path: Path) -> None:
        """Go on where the file's training was, if there is one.

        Raises:
            EngineError: The file is of another version of this program.
        """
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        if not isinstance(state, dict):
            raise EngineError(f"{path} was written by an older version. Delete it: the training begins anew.")
        self.epoch, self.seconds, self.cpu_seconds = (
            state[name] for name in ("epoch", "seconds", "cpu_seconds")
        )
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        self._random.set_state(state["random"])


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of images whose class has the largest score."""
    batches = zip(images.split(256), labels.split(256), strict=True)
    hits = sum(int((model(some).argmax(1) == own).sum()) for some, own in batches)
    return hits / len(images)
