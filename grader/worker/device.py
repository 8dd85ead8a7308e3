"""Devices: a student's `cuda` or `mps` means the device that the run has.

Files say `torch.device("cuda")`, `DEVICE = "cuda"`, `.cuda()` or `.to("cuda")`. On a processor all of these
mean the processor, so a missing GPU costs nobody points. A GPU that should be there and is not counts as
ours. `grader.grading` decides which device a run has.

Tests: tests/worker/test_worker_training.py
"""

import re
from typing import Any

import torch
from torch import Tensor, nn

from grader.worker.fault import UnusableGpuError

_GPU = re.compile(r"(cuda|mps)(:\d+)?")


def is_gpu(value: object) -> bool:
    """Whether a value names a GPU: `"cuda"`, `"cuda:0"`, `"mps"`, or a torch.device of those."""
    if isinstance(value, torch.device):
        return value.type in ("cuda", "mps")
    return isinstance(value, str) and _GPU.fullmatch(value) is not None


def usable_device(name: str, memory_mb: int | None = None) -> torch.device:
    """The device, which the machine must really have: it is not the student's fault if not.

    Args:
        memory_mb: What may be taken of a GPU's memory, in 10**6 bytes, so that others have theirs; None: all.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise UnusableGpuError("PyTorch cannot use the GPU: is its driver as new as PyTorch's CUDA asks for?")
    if name == "cuda" and memory_mb is not None:
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(memory_mb * 10**6 / whole, 1.0))
    return torch.device(name)


def bind_devices(namespace: dict[str, Any], device: torch.device) -> None:
    """Make every name that holds a device hold the run's: a torch.device, or a string that names a GPU."""
    for name, value in list(namespace.items()):
        if isinstance(value, torch.device):
            namespace[name] = device
        elif is_gpu(value):
            namespace[name] = str(device)


def redirect_gpu_calls() -> None:
    """Make `.cuda()` and `.to("cuda")` of tensors and modules mean the processor, for good."""
    Tensor.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign,assignment]
    nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign,assignment]
    for kind in (Tensor, nn.Module):
        kind.to = _redirected(kind.to)  # type: ignore[method-assign,assignment]


def _redirected(original: Any) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if any(is_gpu(value) for value in (*args, *kwargs.values())):
            args = tuple("cpu" if is_gpu(value) else value for value in args)
            kwargs = {name: "cpu" if is_gpu(value) else value for name, value in kwargs.items()}
        return original(self, *args, **kwargs)

    return to
