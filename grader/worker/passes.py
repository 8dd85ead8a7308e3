"""A function that trains, watched from outside: the model after each pass over its loader.

It goes by use: a pass counts if an optimizer stepped the model's parameters in it. A loader of the student's
own is not seen, and then there are no epochs to show. `grader.training.called_training` measures what the
model is worth.

Tests: tests/training/test_called_training.py
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from grader.protocol.replies import EpochDone
from grader.worker.batches import WatchedLoader
from grader.worker.fault import students_code
from grader.worker.losses import LossWatch
from grader.worker.outputs import same_random_numbers, state
from grader.worker.preparation import learning_rate
from grader.worker.schedules import schedule_of

MOST_PASSES = 10_000


class PassWatch:
    """Sees the passes in which a model is trained."""

    def __init__(self, model: nn.Module, losses: LossWatch, tell: Callable[[EpochDone], None]) -> None:
        """Nothing is trained yet.

        Args:
            losses: What the function that trains for an epoch reports.
            tell: Told each pass.
        """
        self._model, self._losses, self._tell = model, losses, tell
        self._count = 0
        self._first: EpochDone | None = None  # of the pass that goes on: what was seen in its first step
        self._rate = 0.0
        self._pending: EpochDone | None = None

    def stepping(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer is about to take a step."""
        self._rate = learning_rate(optimizer)
        if self._first is not None:
            return
        with students_code():
            own = {id(p) for p in self._model.parameters()}
            stepped = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            learned = sum(p.numel() for p in stepped if id(p) in own)
        if learned:
            kind, schedule = type(optimizer).__name__, schedule_of(optimizer)
            self._first = EpochDone(0, self._rate, optimizer=kind, scheduler=schedule, learned=learned)

    def ended(self) -> None:
        """A pass over the training loader has ended."""
        self.told()
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
            self.told()

    def told(self) -> None:
        """Tell of the pass that has ended; what is reported of it is known when the function has returned."""
        if self._pending is None:
            return
        done, self._pending = self._pending, None
        self._tell(replace(done, arrays={**done.arrays, "reported": self._losses.taken()}))


@contextlib.contextmanager
def watched_passes(
    model: Any,
    given: Iterable[Any],
    namespace: Mapping[str, Any],
    trainer: str,
    tell: Callable[[EpochDone], None],
) -> Iterator[dict[str, Any]]:
    """Watch the training of a model, if it is one of PyTorch's, over the loaders among what is given.

    Args:
        given: What the function that trains is called with.
        namespace: The student's names.
        trainer: That of the graded function that trains for an epoch.

    Yields:
        What stands in the place of the student's names meanwhile.
    """
    loaders = list(_loaders(given))
    if not isinstance(model, nn.Module) or not loaders:
        yield {}
        return
    losses = LossWatch(namespace.get(trainer))
    watch = PassWatch(model, losses, tell)
    losses.returned = watch.told
    for loader in loaders:
        loader.ended = watch.ended  # type: ignore[method-assign]
    hook = register_optimizer_step_pre_hook(watch.stepping)
    try:
        yield {trainer: losses.watched()} if trainer in namespace else {}
        watch.told()
    finally:
        hook.remove()


def _loaders(given: Iterable[Any]) -> Iterator[WatchedLoader]:
    for value in given:
        if isinstance(value, WatchedLoader):
            yield value
        elif isinstance(value, dict):
            yield from _loaders(value.values())
        elif isinstance(value, list | tuple):
            yield from _loaders(value)
