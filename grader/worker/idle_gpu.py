"""What stands in for a GPU that a run does not use: clocks, memory and streams, which do nothing.

Code that measures time or memory calls PyTorch's functions for the GPU without asking whether there is one.
Those that change no result then do nothing, or tell of an empty GPU; events tell the time that has passed.
`is_available` and whatever computes or makes tensors stay PyTorch's own, as all of it does on a GPU.
`student_environment` decides what becomes of `.cuda()`, and `grader.grading` on the device.

Tests: tests/worker/test_idle_gpu.py
"""

import functools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MEMORY = 16 * 2**30  # bytes
NAME = "cpu"
MILLISECONDS = 1000.0


class IdleEvent:
    """An event in time, as `torch.cuda.Event(enable_timing=True)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._recorded: float | None = None

    def record(self, stream: Any = None) -> None:
        """It happens now."""
        self._recorded = time.perf_counter()

    def elapsed_time(self, end: "IdleEvent") -> float:
        """The milliseconds until another event; 0 if one of them has not happened."""
        if self._recorded is None or end._recorded is None:
            return 0.0
        return (end._recorded - self._recorded) * MILLISECONDS

    def query(self) -> bool:
        """All that came before it is done."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""


class IdleStream:
    """A queue of work, as `torch.cuda.Stream()`: all that was ordered is done."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what PyTorch takes."""

    def record_event(self, event: IdleEvent | None = None) -> IdleEvent:
        """An event that happens now."""
        event = event or IdleEvent()
        event.record()
        return event

    def query(self) -> bool:
        """All of it is done."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""


class IdleContext:
    """A block of code for a device or a stream, as `torch.cuda.stream(...)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what PyTorch takes."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *details: object) -> None:
        return None


@dataclass(frozen=True)
class IdleProperties:
    """The properties of a GPU, as `torch.cuda.get_device_properties(0)` gives them."""

    name: str = NAME
    total_memory: int = MEMORY
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 1


class IdleDevice(IdleContext):
    """A block of code for a GPU, as `torch.cuda.device(0)`."""


def _no_random_state() -> Tensor:
    return torch.zeros(16, dtype=torch.uint8)


_NOTHING = (
    *("empty_cache", "init", "ipc_collect", "set_device", "set_device_idx", "set_device_index", "set_stream"),
    *("reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"),
    *("reset_peak_memory_stats", "set_per_process_memory_fraction", "synchronize"),
)
_ZERO = (
    *("clock_rate", "current_allocated_memory", "current_device", "current_device_idx"),
    *("current_device_index", "driver_allocated_memory", "max_memory_allocated", "max_memory_cached"),
    *("max_memory_reserved", "memory_allocated", "memory_cached", "memory_reserved", "memory_usage"),
    *("power_draw", "temperature", "utilization"),
)
RESULTS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(_NOTHING, lambda: None),
    **dict.fromkeys(_ZERO, lambda: 0),
    "current_stream": IdleStream,
    "default_stream": IdleStream,
    "get_device_capability": lambda: (0, 0),
    "get_device_name": lambda: NAME,
    "get_device_properties": IdleProperties,
    "get_rng_state": _no_random_state,
    "mem_get_info": lambda: (MEMORY, MEMORY),
    "memory_stats": Counter,
    "memory_summary": str,
    "recommended_max_memory": lambda: MEMORY,
}
CLASSES = {"Event": IdleEvent, "Stream": IdleStream, "device": IdleDevice, "stream": IdleContext}


def stand_in_for_gpu() -> None:
    """Make what measures and orders the work of a GPU do nothing, for good."""
    by_original: dict[int, Any] = {}  # PyTorch's compiler asks for functions of their own, by their identity
    for module in (torch.cuda, torch.cuda.memory, torch.mps, torch.accelerator):
        for name in RESULTS.keys() & vars(module).keys():
            original = vars(module)[name]
            setattr(module, name, by_original.setdefault(id(original), _idle(RESULTS[name], original)))
    for name, idle in CLASSES.items():
        setattr(torch.cuda, name, idle)
    Tensor.pin_memory = lambda self, *args, **kwargs: self  # type: ignore[method-assign,assignment]
    Tensor.record_stream = lambda self, stream: None  # type: ignore[method-assign,assignment]


def _idle(result: Callable[[], Any], original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def idle(*args: Any, **kwargs: Any) -> Any:
        return result()

    return idle
