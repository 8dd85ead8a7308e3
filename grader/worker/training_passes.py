"""Passes of a training, watched from outside: the model after each, its losses and its schedule.

A pass counts if an optimizer stepped the model's parameters in it. It sees neither a student's own loader nor
a schedule whose class is not PyTorch's. Losses are numbers that are appended to a list argument, else
returned, else printed after `loss`; other numbers in these places are mistaken for losses. Losses and
schedules are shown to people and decide no points: `grader.training` measures what the model is worth.

Tests: tests/training/test_called_training.py, tests/training/test_replay.py,
tests/worker/test_worker_training.py
"""

import contextlib
import functools
import gc
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.optimizer import register_optimizer_step_pre_hook

from grader.protocol.replies import EpochDone, Stepped
from grader.worker.model_outputs import same_random_numbers, state
from grader.worker.rigged_objects import WatchedLoader
from grader.worker.student_faults import students_code
from grader.worker.student_module import quiet
from grader.worker.training_setup import learning_rate


def schedule_of(optimizer: torch.optim.Optimizer) -> str:
    """The class of an optimizer's schedule, or of the one that holds the others; empty if there is none."""
    schedules = [
        schedule
        for schedule in gc.get_objects()
        if isinstance(schedule, LRScheduler | ReduceLROnPlateau)
        and getattr(schedule, "optimizer", None) is optimizer
    ]
    held = {id(inner) for schedule in schedules for inner in getattr(schedule, "_schedulers", [])}
    outer = [schedule for schedule in schedules if id(schedule) not in held]
    return type(outer[-1]).__name__ if outer else ""


# --- losses ----------------------------------------------------------------------------------------------


def reported_losses(appended: list[Any], returned: Any, printed: str) -> Any:
    """The losses that train_epoch reported, float64: from the history, else returned, else printed."""
    values = [_number(value) for value in appended[:10_000]] or [_number(returned)]
    losses = [value for value in values if value is not None]
    if not losses:
        match = re.findall(r"loss\D{0,12}(\d+\.\d+)", printed[-20_000:], flags=re.IGNORECASE)
        losses = [float(value) for value in match]
    return np.array(losses, dtype=np.float64)


def _number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value) if math.isfinite(float(value)) else None
    return None


class LossWatch:
    """Watches what train_epoch reports.

    Attributes:
        running: train_epoch is running.
        returned: Called when it has returned.
    """

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self.running = False
        self.returned: Callable[[], None] = lambda: None
        self._function = function
        self._reported: list[float] = []

    def watched(self) -> Callable[..., Any]:
        """The function, watched; its arguments and results are unchanged."""

        real = self._function

        @functools.wraps(real or reported_losses)
        def watched_function(*args: Any, **kwargs: Any) -> Any:
            lists = [value for value in (*args, *kwargs.values()) if isinstance(value, list)]
            before = [len(history) for history in lists]
            self.running = True
            with quiet() as printed:
                returned = real(*args, **kwargs) if real is not None else None
            self.running = False
            appended = [v for history, length in zip(lists, before, strict=True) for v in history[length:]]
            self._reported += reported_losses(appended, returned, printed.getvalue()).tolist()
            self.returned()
            return returned

        return watched_function

    def taken(self) -> Any:
        """The losses since the last call, float64 (numbers,)."""
        losses, self._reported = np.array(self._reported, dtype=np.float64), []
        return losses


# --- passes ----------------------------------------------------------------------------------------------


MOST_PASSES = 10_000


class PassWatch:
    """Watches the passes in which a model is trained.

    Attributes:
        steps: The optimizer steps that moved the model, in passes or not.
    """

    def __init__(self, model: nn.Module, losses: LossWatch, tell: Callable[[EpochDone], None]) -> None:
        """Nothing is trained yet.

        Args:
            losses: What the function that trains for an epoch reports.
            tell: Called with each pass.
        """
        self._model, self._losses, self._tell = model, losses, tell
        self.steps = 0
        self._count = 0
        self._first: EpochDone | None = None  # what the first step of the current pass showed
        self._rate = 0.0
        self._pending: EpochDone | None = None

    def stepping(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer is about to take a step."""
        self._rate = learning_rate(optimizer)
        with students_code():
            own_ids = {id(p) for p in self._model.parameters()}
            stepped = [p for group in optimizer.param_groups for p in group["params"] if id(p) in own_ids]
            learned = sum(p.numel() for p in stepped if p.grad is not None)
        self.steps += bool(stepped)
        if self._first is not None:
            return
        if learned:
            kind, schedule = type(optimizer).__name__, schedule_of(optimizer)
            self._first = EpochDone(0, self._rate, optimizer=kind, scheduler=schedule, learned=learned)

    def ended(self) -> None:
        """A pass over the training loader has ended."""
        self.report_pending()
        first, self._first = self._first, None
        if first is None or self._count >= MOST_PASSES:
            return
        self._count += 1
        with same_random_numbers():
            arrays = {name: value.copy() for name, value in state(self._model).items()}
        per_batch = first.learning_rate != self._rate
        self._pending = replace(
            first, number=self._count, learning_rate=self._rate, per_batch=per_batch, arrays=arrays
        )
        if not self._losses.running:
            self.report_pending()

    def report_pending(self) -> None:
        """Report the pass that has ended; its losses are known when the function has returned."""
        if self._pending is None:
            return
        done, self._pending = self._pending, None
        self._tell(replace(done, arrays={**done.arrays, "reported": self._losses.taken()}))


@contextlib.contextmanager
def watched_passes(
    model: Any,
    arguments: Iterable[Any],
    namespace: Mapping[str, Any],
    trainer: str,
    tell: Callable[[EpochDone | Stepped], None],
) -> Iterator[dict[str, Any]]:
    """Watch the training of a model, if it is a PyTorch module, over the loaders among the arguments.

    Args:
        arguments: What the function that trains is called with.
        namespace: The student's names.
        trainer: The name of the graded function that trains for an epoch.

    Yields:
        What replaces the student's names meanwhile.
    """
    loaders = list(_loaders(arguments))
    if not isinstance(model, nn.Module) or not loaders:
        yield {}
        return
    losses = LossWatch(namespace.get(trainer))
    watch = PassWatch(model, losses, tell)
    losses.returned = watch.report_pending
    for loader in loaders:
        loader.ended = watch.ended  # type: ignore[method-assign]
    hook = register_optimizer_step_pre_hook(watch.stepping)
    try:
        yield {trainer: losses.watched()} if trainer in namespace else {}
        watch.report_pending()
        tell(Stepped(watch.steps, max(map(len, loaders))))
    finally:
        hook.remove()


def _loaders(values: Iterable[Any]) -> Iterator[WatchedLoader]:
    for value in values:
        if isinstance(value, WatchedLoader):
            yield value
        elif isinstance(value, dict):
            yield from _loaders(value.values())
        elif isinstance(value, list | tuple):
            yield from _loaders(value)
