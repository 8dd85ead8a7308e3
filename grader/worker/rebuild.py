"""Training from the values that the source gives: where the student's own loop cannot be executed."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from grader.protocol.replies import EpochDone, Problem, Trained, TrainingPlan, WhyRebuilt
from grader.worker.arguments import arguments
from grader.worker.fault import RecipeError, SeenError, StudentFault, students_code
from grader.worker.losses import LossWatch
from grader.worker.outputs import answers, array, module_tree, same_random_numbers, state
from grader.worker.preparation import Prepared
from grader.worker.program import StudentModule, quiet
from grader.worker.recipe import bind

PROBES = 32  # images for which a trained model answers here too
TRAIN_EPOCH = ("model", "optimizer", "data_loader", "loss_history")  # its handed-out parameters

Tell = Callable[[TrainingPlan | EpochDone | Trained], None]


def rebuilt(
    student: StudentModule, ready: Prepared, why: WhyRebuilt, tell: Tell, problem: Problem | None = None
) -> None:
    """Train epoch by epoch with the student's train_epoch, optimizer and schedule.

    Args:
        why: Why the student's own loop is not used.
        tell: Told the plan, each epoch and the end.
        problem: What it raised.

    Raises:
        RecipeError: The schedule cannot be followed.
        StudentFault: The student's code raised.
    """
    model, optimizer, scheduler = ready.model, ready.optimizer, ready.scheduler
    tell(ready.plan(why, problem))
    history: list[Any] = []
    steps = student.program.recipe.scheduler_steps if scheduler is not None else "none"
    passed = ("scheduler", "lr_scheduler") if steps == "batch" else ()
    watch = LossWatch(student.namespace["train_epoch"])
    train_epoch = watch.watched()
    for number in range(1, ready.settings.epochs + 1):
        by_role = {
            **ready.data.by_role(student.class_names),
            "data_loader": ready.data.train_loader,
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "loss_history": history,
            "epoch": number - 1,
        }
        bind(student, by_role)
        model.train()
        with students_code(), quiet():
            positional, named = arguments(
                train_epoch, TRAIN_EPOCH, by_role, passed=passed, device=ready.device
            )
            train_epoch(*positional, **named)
        if steps == "epoch":
            _step(scheduler)
        elif steps == "batch" and getattr(scheduler, "last_epoch", 1) <= 0:
            raise RecipeError("batch_schedule")
        arrays = {**state(model), "reported": watch.taken()}
        tell(EpochDone(number, learning_rate(optimizer), module_tree(model), arrays=arrays))
    tell(ended(ready.settings.epochs, model, ready))


def ended(epochs: int, model: nn.Module, ready: Prepared) -> Trained:
    """The end of a training: the weights, and what the model answers with them for the probe images.

    Raises:
        StudentFault: Reading the weights raised.
    """
    arrays = state(model)
    # what it answers is compared with what its weights answer elsewhere: nobody's points hang on it
    with contextlib.suppress(StudentFault), same_random_numbers():
        with students_code():
            probe = ready.validation.batch(0, min(PROBES, len(ready.validation)))
        told = answers(model, [probe], ready.device, len(ready.validation.classes))
        arrays |= {"probe": array(probe.float()), "probe_logits": told}
    return Trained(epochs, module_tree(model), arrays)


def learning_rate(optimizer: torch.optim.Optimizer) -> float:
    """That of the first parameter group; a frame cannot carry one that is no number any more.

    Raises:
        StudentFault: It is none.
    """
    with students_code():
        rate = float(optimizer.param_groups[0]["lr"])
        if not math.isfinite(rate):
            raise SeenError("no_learning_rate", f"the learning rate became {rate}")
        return rate


def _step(scheduler: Any) -> None:
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise RecipeError("validated_schedule")
    with students_code():
        scheduler.step()
