"""Training the student's model with the student's own train_epoch, optimizer and schedule.

The labels of the test images are not here: after each epoch the logits go to the judge.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from grader.protocol.messages import CheckpointLoaded, EpochDone, LoadCheckpoint, Train, Trained, TrainingPlan
from grader.worker.arguments import arguments
from grader.worker.checkpoint import state_dict
from grader.worker.fault import RecipeError, StudentFault, UnusableGpuError, students_code
from grader.worker.images import GradedImages
from grader.worker.program import StudentModule, quiet, seed_all
from grader.worker.recipe import (
    HANDED_OUT_BATCH_SIZE,
    Data,
    Settings,
    bind,
    built_model,
    built_optimizer,
    configured_model,
    settings,
    transforms,
)

EVALUATION_BATCH = 256
TRAIN_EPOCH = ("model", "optimizer", "data_loader", "loss_history")  # its handed-out parameters

TrainingReply = TrainingPlan | EpochDone | Trained


def trained(student: StudentModule, request: Train) -> Iterator[TrainingReply]:
    """Train; yields the plan, each epoch, and the end.

    Raises:
        RecipeError: The source does not say how.
        StudentFault: The student's code raised.
    """
    torch.set_num_threads(request.threads)
    device = _usable(request.device)
    seed_all(request.seed, device.type)
    chosen = settings(student, device)
    data, test_images = _data(request, chosen)
    model = built_model(student, data, device)
    optimizer, scheduler = built_optimizer(student)
    if "train_epoch" not in student.namespace:
        raise StudentFault(NameError("`train_epoch` is not defined"))
    yield TrainingPlan(
        epochs=chosen.epochs,
        batch_size=chosen.batch_size,
        optimizer=type(optimizer).__name__,
        scheduler=type(scheduler).__name__ if scheduler is not None else "",
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        notes=chosen.notes,
    )
    history: list[Any] = []
    steps = student.program.recipe.scheduler_steps if scheduler is not None else "none"
    passed = ("scheduler", "lr_scheduler") if steps == "batch" else ()
    for number in range(1, chosen.epochs + 1):
        before = len(history)
        by_role = {
            **data.by_role(student.class_names),
            "data_loader": data.train_loader,
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "loss_history": history,
            "epoch": number - 1,
        }
        bind(student, by_role)
        model.train()
        with students_code(), quiet() as printed:
            function = student.namespace["train_epoch"]
            positional, named = arguments(function, TRAIN_EPOCH, by_role, passed=passed, device=device)
            returned = function(*positional, **named)
        if steps == "epoch":
            _step(scheduler)
        elif steps == "batch" and getattr(scheduler, "last_epoch", 1) <= 0:
            raise RecipeError(
                "the schedule is stepped for every batch, but not by train_epoch: this form of training "
                "would leave the learning rate as it is at the beginning"
            )
        yield EpochDone(
            number=number,
            learning_rate=_learning_rate(optimizer),
            arrays={
                "logits": logits(model, test_images, device, chosen.batch_size),
                "reported": _reported(history[before:], returned, printed.getvalue()),
            },
        )
    yield Trained(chosen.epochs)


def checkpoint_loaded(student: StudentModule, request: LoadCheckpoint) -> CheckpointLoaded:
    """Load a checkpoint into the student's model and answer for the images.

    Raises:
        RecipeError: The source has no model.
        StudentFault: The student's code raised.
    """
    weights = state_dict(request.arrays["file"].tobytes(), request.max_bytes)
    if isinstance(weights, str):
        return CheckpointLoaded("refused", weights)
    device = _usable(request.device)
    model = configured_model(student)
    wrong = mismatch(model, weights)
    if wrong:
        return CheckpointLoaded("mismatch", wrong)
    with students_code():
        model.load_state_dict(weights)
        model.to(device)
    _, transform = transforms(student, [])
    with students_code():  # a deterministic transform is applied here
        images = GradedImages(request.arrays["test_images"], None, student.class_names, transform)
    return CheckpointLoaded("fits", arrays={"logits": logits(model, images, device)})


def logits(
    model: nn.Module, data: GradedImages, device: torch.device, batch_size: int = HANDED_OUT_BATCH_SIZE
) -> Any:
    """The model's outputs in evaluation mode, float32 (images, classes).

    Args:
        batch_size: The student's own: what fits into memory in training fits here too.

    Raises:
        StudentFault: The model raised, or returns something else.
    """
    was_training = model.training
    batch = min(batch_size, EVALUATION_BATCH)
    parts = []
    with students_code(), torch.no_grad(), quiet():
        model.eval()
        for start in range(0, len(data), batch):
            images = data.batch(start, min(start + batch, len(data))).to(device)
            output = model(images)
            if not isinstance(output, Tensor) or output.shape != (len(images), len(data.classes)):
                raise TypeError(
                    f"the model must return a tensor of shape (batch, {len(data.classes)}), "
                    f"not {tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__}"
                )
            parts.append(output.float().cpu())
        model.train(was_training)
    return torch.cat(parts).numpy()


def mismatch(model: nn.Module, weights: dict[str, Tensor]) -> str:
    """What keeps weights from fitting a model, in words; empty when they fit."""
    expected = model.state_dict()
    missing = [name for name in expected if name not in weights]
    unknown = [name for name in weights if name not in expected]
    if missing or unknown:
        example = f"`{missing[0]}` is missing" if missing else f"`{unknown[0]}` is not in the model"
        return (
            f"{len(missing)} of the model's {len(expected)} tensors are missing in it and {len(unknown)} of "
            f"its own are not in the model (for example {example})"
        )
    for name, value in expected.items():
        if weights[name].shape != value.shape:
            return (
                f"`{name}` has the shape {tuple(weights[name].shape)} in it and {tuple(value.shape)} "
                "in the model"
            )
    return ""


def _usable(name: str) -> torch.device:
    """The device, which the machine must really have: it is not the student's fault if not."""
    if name == "cuda" and not torch.cuda.is_available():
        raise UnusableGpuError("PyTorch cannot use the GPU: is its driver as new as PyTorch's CUDA asks for?")
    return torch.device(name)


def _data(request: Train, chosen: Settings) -> tuple[Data, GradedImages]:
    """The student's loaders over the training images, and the test images."""
    arrays, classes = request.arrays, request.class_names
    with students_code():  # deterministic transforms, which are the student's, are applied here
        train = GradedImages(arrays["train_images"], arrays["train_labels"], classes, chosen.train_transform)
        test = GradedImages(arrays["test_images"], None, classes, chosen.test_transform)
    shuffling = torch.Generator().manual_seed(request.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train, batch_size=chosen.batch_size, shuffle=True, generator=shuffling
    )
    return Data(train_loader, DataLoader(train, batch_size=chosen.batch_size)), test


def _step(scheduler: Any) -> None:
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise RecipeError("ReduceLROnPlateau steps on a validation loss, which this form of training has not")
    with students_code():
        scheduler.step()


def _learning_rate(optimizer: torch.optim.Optimizer) -> float:
    """That of the first parameter group; a frame cannot carry one that is no number any more."""
    with students_code():
        rate = float(optimizer.param_groups[0]["lr"])
        if not math.isfinite(rate):
            raise ValueError(f"the learning rate became {rate}")
        return rate


def _reported(appended: list[Any], returned: Any, printed: str) -> Any:
    """The losses that train_epoch reported, float64: from the history, else returned, else printed."""
    values = [_number(value) for value in appended[:10_000]] or [_number(returned)]
    found = [value for value in values if value is not None]
    if not found:
        match = re.findall(r"loss\D{0,12}(\d+\.\d+)", printed[-20_000:], flags=re.IGNORECASE)
        found = [float(value) for value in match]
    return np.array(found, dtype=np.float64)


def _number(value: Any) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value) if math.isfinite(float(value)) else None
    return None
