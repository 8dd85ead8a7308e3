"""What measures time and memory of a GPU does nothing where there is none, and costs nobody a point."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

Tiny = Callable[..., Any]

CALLS = """
import torch
from torch.cuda import synchronize
def train_epoch(model, optimizer, data_loader, loss_history):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(True)
    assert start.elapsed_time(end) == 0
    torch.cuda.reset_peak_memory_stats()
    start.record()
    fetching = torch.cuda.Stream()
    for images, labels in data_loader:
        with torch.cuda.stream(fetching), torch.cuda.device(0):
            images = images.pin_memory().cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(fetching)
        images.record_stream(torch.cuda.current_stream())
        with torch.cuda.amp.autocast(), torch.autocast("cuda", dtype=torch.float16):
            loss_history.append(float(model(images).sum()))
        optimizer.step()
    end.record()
    synchronize()
    torch.cuda.synchronize(torch.device("cuda"))
    torch.mps.synchronize()
    torch.accelerator.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000
    for empty in (torch.cuda.empty_cache, torch.cuda.memory.empty_cache, torch.mps.empty_cache):
        empty()
    used = torch.cuda.max_memory_allocated("cuda") + torch.cuda.memory_allocated(0)
    free, total = torch.cuda.mem_get_info()
    peak = torch.cuda.memory_stats()["allocated_bytes.all.peak"]
    assert used == torch.cuda.memory_reserved() == torch.mps.current_allocated_memory() == peak == 0
    assert free == total == torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory > 0
    print(torch.cuda.get_device_name(0), torch.cuda.memory_summary(abbreviated=True))
    torch.cuda.set_rng_state(torch.cuda.get_rng_state())
    assert torch.cuda.get_device_capability() < (7, 0)
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
"""


def test_what_does_nothing_without_a_gpu(tiny: Tiny) -> None:
    _, epochs = tiny(CALLS).trained()
    assert len(epochs) == 2


@pytest.mark.slow
def test_the_compiler_finds_each_function_in_its_place() -> None:
    """It looks at all functions of PyTorch by their identity, and asks what each of them is."""
    code = """
    import torch
    from grader.worker.idle_gpu import stand_in_for_gpu
    stand_in_for_gpu()
    assert torch.cuda.empty_cache is torch.cuda.memory.empty_cache
    print(torch.compile(torch.nn.Linear(2, 3), backend="eager")(torch.ones(1, 2)).shape)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "torch.Size([1, 3])", done.stderr
