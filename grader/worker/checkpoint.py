"""Submitted weights: read as plain tensors within bounds, and tried in the student's model.

Nothing is unpickled but tensors and plain containers. It decides whether a file is readable and fits the
model; everything else is refused with a reason. `grader.training.submitted_weights` measures what the weights
reach, and `grader.scoring` decides what that is worth.

Tests: tests/worker/test_checkpoint.py, tests/worker/test_plain_weights.py
"""

import io
from typing import Any, Literal

import torch
from torch import Tensor

from grader.protocol.replies import CheckpointFault, CheckpointLoaded
from grader.protocol.requests import LoadCheckpoint
from grader.worker.device import usable_device
from grader.worker.fault import students_code
from grader.worker.images import GradedImages
from grader.worker.measuring import misfit
from grader.worker.outputs import logits
from grader.worker.plain_weights import is_npz, is_safetensors, npz_weights, safetensors_weights
from grader.worker.program import StudentModule
from grader.worker.recipe import configured_model, transforms
from grader.worker.wrapped_names import unwrapped_names

NESTED = ("state_dict", "model_state_dict", "model")
MAX_TENSORS = 5000
WHOLE_MODEL: Literal["whole_model"] = "whole_model"


def checkpoint_loaded(student: StudentModule, request: LoadCheckpoint) -> CheckpointLoaded:
    """Load a checkpoint into the student's model and answer for the images.

    Raises:
        RecipeError: The source has no model.
        StudentFault: The student's code raised.
    """
    weights = state_dict(request.arrays["file"].tobytes(), request.max_bytes)
    if weights == WHOLE_MODEL:
        return CheckpointLoaded("whole_model")
    if isinstance(weights, str):
        return CheckpointLoaded("refused", weights)
    device = usable_device(request.device)
    model = configured_model(student)
    with students_code():
        wrong = misfit(model, weights)
    if wrong is not None:
        return CheckpointLoaded("mismatch", misfit=wrong)
    with students_code():
        model.load_state_dict(weights)
        model.to(device)
    _, transform = transforms(student, [], request.arrays["test_images"][0])
    with students_code():  # a deterministic transform is applied here
        images = GradedImages(request.arrays["test_images"], None, student.class_names, transform)
    return CheckpointLoaded("fits", arrays={"logits": logits(model, images, device)})


def state_dict(data: bytes, max_bytes: int) -> dict[str, Tensor] | CheckpointFault | Literal["whole_model"]:
    """The weights in a checkpoint file, or why there are none to be had.

    Nothing is unpickled but tensors and plain containers (`weights_only`). The sizes that tensors claim are
    checked, because a stride of 0 makes a small file claim terabytes.
    """
    if is_safetensors(data) or is_npz(data):
        read = safetensors_weights if is_safetensors(data) else npz_weights
        found = read(data, max_bytes)
        return found if isinstance(found, str) else unwrapped_names(found)
    try:
        loaded: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:
        # PyTorch's words for a class or function that a file names; the rest of its message is always there
        if "GLOBAL" in str(error):
            return WHOLE_MODEL
        return "unreadable"
    for key in NESTED:
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
            break
    if not isinstance(loaded, dict) or not loaded or len(loaded) > MAX_TENSORS:
        return "no_state_dict"
    total = 0
    for name, value in loaded.items():
        if not isinstance(name, str) or not _is_plain(value):
            return "odd_entry"
        total += value.numel() * value.element_size()
        if total > max_bytes or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            return "too_large"
    return unwrapped_names(loaded)


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with numbers of its own: not sparse, quantized, or on the device `meta`."""
    return (
        type(value) is Tensor
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )
