"""The outputs of a student's model for the grader's images."""

from typing import Any

import torch
from torch import Tensor, nn

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
