"""The device that a run trains on, whether isolated code can use it, and how many fit on it.

PyTorch may see a GPU that a locked-down worker cannot use; every training would stay unknown then. So a
worker is asked, isolated as in grading, before anything is trained, and by `grader doctor`.

Tests: tests/grading/test_devices.py
"""

import functools
import json
import os
import subprocess
from pathlib import Path

from grader.domain.errors import EngineError, UsageError
from grader.domain.limits import MEGABYTE
from grader.grading.concurrent_work import DeviceSlots
from grader.protocol.deadlines import Deadline
from grader.sandbox import ProcessLimits
from grader.sandbox.host_client import Host
from grader.sandbox.readable_files import GPU_CHOICE

CPU_SECONDS = 120
TRIAL_SECONDS = 300.0
MOST_BYTES = 10_000
USABLE = 0.9  # of the free memory: the rest is left to PyTorch's own needs
_NODE = Path("/dev/nvidiactl")
_CHOICE, _ = GPU_CHOICE
_NO_GPU = ("", "-1", "NoDevFiles")  # the last is Slurm's word


def training_device(wanted: str, *, unofficial: bool = False) -> str:
    """`cpu` or `cuda`: auto takes a GPU when the driver's device node is there.

    Args:
        wanted: `auto`, `cpu` or `cuda`.
        unofficial: Less isolation is accepted.

    Raises:
        UsageError: A GPU is wanted, and there is none; or there is one that isolated code cannot use.
    """
    has_gpu = _NODE.exists() and allowed_gpus() != []
    if wanted == "cuda" and not has_gpu:
        raise UsageError("There is no NVIDIA GPU on this machine. Use --device cpu or auto.")
    if wanted == "cpu" or not has_gpu:
        return "cpu"
    if fault := gpu_fault(unofficial=unofficial):
        raise UsageError(f"Isolated code cannot use the GPU of this machine ({fault}). Use --device cpu.")
    return "cuda"


@functools.cache
def gpu_fault(*, unofficial: bool = False) -> str:
    """Why a worker cannot use the GPU; empty when it can. It takes some seconds, once.

    Args:
        unofficial: It may have less isolation than an official grade needs.
    """
    limits = ProcessLimits(cpu_seconds=CPU_SECONDS)
    try:
        with (
            Host.start("grader.worker.gpu_trial", unofficial=unofficial, wrapped=True) as host,
            host.spawn(limits, gpu=True) as child,
            Deadline(TRIAL_SECONDS, child.kill) as deadline,  # the driver of a broken GPU may wait for ever
        ):
            answer = b""
            while not answer.endswith(b"\n") and len(answer) < MOST_BYTES:
                part = child.reader.read(MOST_BYTES)
                if not part and deadline.expired:
                    return f"the process that tried it did not answer within {TRIAL_SECONDS:.0f} s"
                if not part:
                    return "the process that tried it ended without a word"
                answer += part
    except EngineError as error:
        return str(error)
    return str(json.loads(answer))


def allowed_gpus() -> list[str] | None:
    """The GPUs that the operator, or a batch system, lets this process see, as CUDA names them.

    Returns:
        None where nobody chose; empty where no GPU of the machine is to be used.
    """
    chosen = os.environ.get(_CHOICE)
    if chosen is None:
        return None
    gpus = [gpu.strip() for gpu in chosen.split(",")]
    return [] if gpus[0] in _NO_GPU else [gpu for gpu in gpus if gpu]


def device_slots(device: str, memory_mb: int) -> DeviceSlots:
    """The slots on a device.

    Args:
        device: `cpu` or `cuda`.
        memory_mb: What one submission gets of a GPU's memory.
    """
    if device != "cuda":
        return DeviceSlots()
    return DeviceSlots(max(int(USABLE * _free_mb() // memory_mb), 1))


def _free_mb() -> float:
    """The free memory of the GPU that is used, in 10**6 bytes; 0 where the driver's tool does not say."""
    query = "--query-gpu=memory.free"
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits", f"--id={_used_gpu()}"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        return float(output.split()[0]) * 2**20 / MEGABYTE  # it counts in MiB
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0.0


def _used_gpu() -> str:
    """The number or the id of the GPU that workers use: the first that the operator lets them see."""
    return (allowed_gpus() or ["0"])[0]
