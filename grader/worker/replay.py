"""The student's own loop over epochs, executed on the grader's images and watched from outside.

An epoch is a pass over the training loader in which an optimizer stepped the model. After each the model's
weights go to the judge; the random numbers that the student's code draws are not touched by that.
"""

import contextlib
import copy
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from grader.domain.errors import Interruption
from grader.domain.program import Replay
from grader.protocol.replies import EpochDone, Problem, WhyRebuilt
from grader.worker.fault import RecipeError, StudentFault, students_code
from grader.worker.losses import LossWatch
from grader.worker.origin import problem
from grader.worker.outputs import module_tree, same_random_numbers, state
from grader.worker.preparation import Prepared
from grader.worker.program import StudentModule, quiet
from grader.worker.rebuild import Tell, ended, learning_rate
from grader.worker.recipe import bind


class NotReplayed(Interruption):
    """No epoch was trained by the loop as it stands.

    Attributes:
        why: As in TrainingPlan.
        problem: What it raised.
    """

    def __init__(self, why: WhyRebuilt, problem: Problem | None = None) -> None:
        super().__init__(why)
        self.why: WhyRebuilt = why
        self.problem = problem


class WatchedLoader(DataLoader[Any]):
    """A loader that tells when a pass over it has ended, at its end or before."""

    ended: Callable[[], None] = staticmethod(lambda: None)

    def __iter__(self) -> Any:
        try:
            yield from super().__iter__()
        finally:
            self.ended()


class EpochWatch:
    """Sees the epochs of a loop that it did not write.

    Attributes:
        epochs: How many were trained.
    """

    def __init__(self, student: StudentModule, ready: Prepared, losses: LossWatch, tell: Tell) -> None:
        self.epochs = 0
        self._student = student
        self._ready = ready
        self._losses = losses
        self._tell = tell
        self._rate = 0.0
        self._stepped: dict[int, torch.optim.Optimizer] = {}
        self._others = 0  # numbers that were stepped since the last epoch, and are not the model's
        self._pending: EpochDone | None = None

    def stepped(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer has taken a step."""
        self._stepped[id(optimizer)] = optimizer
        self._rate = learning_rate(optimizer)

    def ended(self) -> None:
        """A pass over the training loader has ended."""
        self.told()
        stepped, others = self._numbers_stepped()
        self._others += others
        if stepped:
            others, self._others = self._others, 0
            self.epochs += 1
            with same_random_numbers():
                tree, arrays = module_tree(self.model), state(self.model)
            self._pending = EpochDone(self.epochs, self._rate, tree, others, arrays)
            if not self._losses.running:
                self.told()

    def told(self) -> None:
        """Tell of the epoch that has ended; its losses are known when train_epoch has returned."""
        if self._pending is not None:
            done, self._pending = self._pending, None
            self._tell(replace(done, arrays={**done.arrays, "reported": self._losses.taken()}))

    def _numbers_stepped(self) -> tuple[int, int]:
        """How many trainable numbers of the model, and of whatever else, optimizers stepped in this pass."""
        optimizers, self._stepped = self._stepped.values(), {}
        with students_code():
            own = {id(p) for model in (self.model, self._ready.model) for p in model.parameters()}
            stepped = {id(p): p for o in optimizers for group in o.param_groups for p in group["params"]}
            ours = sum(p.numel() for key, p in stepped.items() if key in own)
            return ours, sum(p.numel() for p in stepped.values()) - ours

    @property
    def model(self) -> nn.Module:
        """The model that the student's code has now."""
        model = self._student.namespace.get(self._student.program.recipe.model_name)
        return model if isinstance(model, nn.Module) else self._ready.model


def replayed(student: StudentModule, ready: Prepared, replay: Replay, tell: Tell) -> None:
    """Execute the loop, with what comes before and after it.

    Args:
        tell: Told the plan, each epoch, and the end.

    Raises:
        NotReplayed: Nothing was trained; the model may have been changed.
        RecipeError: The loop could not be carried on, and not because of a graded part.
        StudentFault: The student's train_epoch raised.
    """
    losses = LossWatch(student.namespace["train_epoch"])
    watch = EpochWatch(student, ready, losses, tell)
    loader = ready.data.train_loader
    watched = WatchedLoader(
        loader.dataset, batch_size=loader.batch_size, shuffle=True, generator=loader.generator
    )
    watched.ended = watch.ended  # type: ignore[method-assign]
    losses.returned = watch.told
    values = {**ready.data.by_role(student.class_names), "train_loader": watched}
    bind(student, values)
    tell(ready.plan())
    hook = register_optimizer_step_post_hook(watch.stepped)
    try:
        with student.replaced({"train_epoch": losses.watched()}), _weights_in_memory(), quiet():
            _run(student, replay, watch, losses)
    finally:
        hook.remove()
    watch.told()
    tell(ended(watch.epochs, watch.model, ready))


def _run(student: StudentModule, replay: Replay, watch: EpochWatch, losses: LossWatch) -> None:
    try:
        student.run([*replay.before, replay.loop])
    except StudentFault as fault:
        if not watch.epochs:
            raise NotReplayed("raised", problem(fault.error)) from fault
        if losses.running:
            raise
        raise RecipeError("loop_raised", fault.error) from fault
    if not watch.epochs:
        raise NotReplayed("no_step")
    for statement in replay.after:
        # what restores weights that were never saved here changes nothing
        with contextlib.suppress(StudentFault):
            student.run([statement])


@contextlib.contextmanager
def _weights_in_memory() -> Iterator[None]:
    """`torch.save(..., path)` and `torch.load(path)` keep what they are given, wherever the path leads."""
    saved: dict[str, Any] = {}
    real_save, real_load = torch.save, torch.load

    def save(value: Any, place: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(place, str | os.PathLike):
            saved[os.fspath(place)] = copy.deepcopy(value)
        else:
            real_save(value, place, *args, **kwargs)

    def load(place: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(place, str | os.PathLike) and os.fspath(place) in saved:
            return copy.deepcopy(saved[os.fspath(place)])
        return real_load(place, *args, **kwargs)

    torch.save, torch.load = save, load  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.save, torch.load = real_save, real_load
