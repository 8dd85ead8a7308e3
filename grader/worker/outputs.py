"""The outputs of a student's model for the grader's images."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grader.worker.attention import attention_weights
from grader.worker.fault import students_code
from grader.worker.images import GradedImages
from grader.worker.program import quiet

EVALUATION_BATCH = 256


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
    parts = []
    with students_code(), torch.no_grad(), quiet(), _evaluating(model):
        for start in range(0, len(data), batch):
            images = data.batch(start, min(start + batch, len(data))).to(device)
            output = model(images)
            if not isinstance(output, Tensor) or output.shape != (len(images), len(data.classes)):
                raise TypeError(
                    f"the model must return a tensor of shape (batch, {len(data.classes)}), "
                    f"not {tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__}"
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
