"""Outputs of a student's model: its tree of modules, its weights, its logits for given images.

It decides whether outputs have the shape that is asked for; other outputs are the student's fault.
`grader.training` measures what the numbers are worth. Attention is a picture for people: where it cannot be
read, None.

Tests: tests/worker/test_worker_training.py
"""

import contextlib
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.protocol.replies import Module
from grader.protocol.requests import MOST_STATE, MOST_TENSORS, STATE
from grader.worker.attention import attention_weights
from grader.worker.fault import RecipeError, SeenError, students_code
from grader.worker.images import GradedImages
from grader.worker.program import quiet

EVALUATION_BATCH = 256
MAX_MODULES = 2000
EXACT = (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)


def array(value: Tensor) -> Any:
    """A tensor as an array that a frame can carry, whatever it is a view of."""
    value = value.detach().to("cpu")
    if value.dtype not in EXACT:
        value = value.to(torch.float32) if value.is_floating_point() else value.to(torch.int64)
    return value.contiguous().numpy()


def module_tree(model: nn.Module) -> tuple[Module, ...]:
    """The modules of a model, the first 2000.

    Raises:
        StudentFault: Reading them raised.
    """
    found = []
    with students_code():  # reading a lazy layer's parameters raises
        for path, part in list(model.named_modules())[:MAX_MODULES]:
            own = sum(p.numel() for p in part.parameters(recurse=False) if p.requires_grad)
            rate = float(part.p) if isinstance(part, nn.modules.dropout._DropoutNd) else None
            kind = type(part)
            found.append(Module(path[:300], kind.__name__[:80], str(kind.__module__)[:120], own, rate))
    return tuple(found)


def state(model: nn.Module) -> dict[str, Any]:
    """The parameters and buffers of a model as arrays by `state:<name>`.

    Raises:
        StudentFault: Reading them raised.
        RecipeError: They are more than can be measured.
    """
    with students_code():
        named = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor)}
        size = sum(value.numel() * value.element_size() for value in named.values())
        if size > MOST_STATE or len(named) > MOST_TENSORS:
            raise RecipeError("too_many_weights")
        return {STATE + name: array(value) for name, value in named.items()}


def logits(
    model: nn.Module, data: GradedImages, device: torch.device, batch_size: int = EVALUATION_BATCH
) -> Any:
    """The model's outputs in evaluation mode, float32 (images, classes).

    Args:
        batch_size: The student's own: what fits into memory in training fits here too.

    Raises:
        StudentFault: The model raised, or returns something else.
    """
    batch = min(batch_size, EVALUATION_BATCH)
    starts = range(0, len(data), batch)
    parts = (data.batch(start, min(start + batch, len(data))) for start in starts)
    return answers(model, parts, device, len(data.classes))


def answers(model: nn.Module, batches: Iterable[Tensor], device: torch.device, classes: int) -> Any:
    """The model's outputs for inputs in evaluation mode, float32 (images, classes).

    Raises:
        StudentFault: As for `logits`.
    """
    parts = []
    with students_code(), torch.no_grad(), quiet(), _evaluating(model):
        for images in batches:
            output = model(images.to(device))
            if not isinstance(output, Tensor) or output.shape != (len(images), classes):
                raise SeenError(
                    "other_outputs",
                    f"the model must return a tensor of shape (batch, {classes}), "
                    f"not {tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__}",
                )
            parts.append(output.float().cpu())
    return torch.cat(parts).numpy()


def attention(model: nn.Module, data: GradedImages, device: torch.device, images: tuple[int, ...]) -> Any:
    """The attention weights for some of the images, float32 (images, layers, tokens, tokens), or None.

    They are a picture for people: where they cannot be had, nothing else is missing.
    """
    with contextlib.suppress(Exception), quiet(), _evaluating(model), same_random_numbers():
        fed = torch.cat([data.batch(index, index + 1) for index in images]).to(device)
        found = attention_weights(model, fed)
        return None if found is None else found.numpy()
    return None


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """What is drawn within does not count."""
    states = random.getstate(), np.random.get_state()
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=None if used else []):
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    try:
        model.eval()
        yield
    finally:
        model.train(was_training)
