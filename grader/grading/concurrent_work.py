"""Work on several submissions at a time: threads, slots on the device, and progress.

It runs the same work for many items, some of them at once, and ends all of it when one fails or somebody
interrupts. It decides how many may train on the device at once: as many as its memory holds, or one
alone. It defines how the progress of a run is reported. It knows nothing about the work itself.
"""

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from grader.domain.errors import UsageError
from grader.domain.limits import MEGABYTE


class GradingStage(StrEnum):
    """Where a submission is, in the order of the flow."""

    READING = "reading"
    CHECKS = "checks"
    TRAINING = "training"
    CHECKPOINT = "checkpoint"
    DONE = "done"


@dataclass(frozen=True)
class Progress:
    """A submission has come further.

    Attributes:
        share: How much of the stage is done, 0 to 1.
        text: A few words: `23 of 44 checks`, `epoch 7 of 30, 71 %`.
    """

    student_id: str
    stage: GradingStage
    share: float = 0.0
    text: str = ""


UNCHANGED = "unchanged"  # the text of a submission for which there was nothing to do

Watcher = Callable[[Progress], None]


# --- side by side ----------------------------------------------------------------------------------------


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def side_by_side(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    jobs: int,
    *,
    report: Callable[[Outcome], object] = lambda outcome: None,
    interrupted: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """The outcomes in the order of the items.

    An exception in one, or an interruption, ends all of it: nothing new is begun, and what is under way is
    not waited for.

    Args:
        jobs: How many at once.
        report: Called with each outcome as soon as it is there.
        interrupted: Called first in that case, before anything under way can fail as a consequence.
    """
    pool = ThreadPoolExecutor(max_workers=max(jobs, 1))
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in as_completed(futures):
            report(future.result())
    except BaseException:
        interrupted()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.result() for future in futures]


# --- gpu slots -------------------------------------------------------------------------------------------


USABLE = 0.9  # of the free memory: the rest is left to PyTorch's own needs


class DeviceSlots:
    """A semaphore: slots on a device, for threads that each train a submission.

    Args:
        places: How many may train at once; None: any number, as on processors, which the number of jobs
            shares out.
    """

    def __init__(self, places: int | None = None) -> None:
        self.places = places
        self._training = 0
        self._wanting_all = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, *, alone: bool = False) -> Iterator[None]:
        """A slot on the device, for as long as the context lasts.

        Args:
            alone: All slots. Whoever wants that goes first, or others would always be there.
        """
        if self.places is None:
            yield
            return
        with self._changed:
            self._wanting_all += alone
            try:
                self._changed.wait_for(lambda: self._is_free(alone))
            finally:
                self._wanting_all -= alone
            self._training += self.places if alone else 1
        try:
            yield
        finally:
            with self._changed:
                self._training -= self.places if alone else 1
                self._changed.notify_all()

    def _is_free(self, alone: bool) -> bool:
        if alone:
            return self._training == 0
        assert self.places is not None
        return self._training < self.places and not self._wanting_all


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
    """The free memory of the first GPU in 10**6 bytes; 0 where the driver's tool does not say."""
    command = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "--id=0"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        return float(output.split()[0]) * 2**20 / MEGABYTE  # it counts in MiB
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0.0


def training_device(wanted: str) -> str:
    """`cpu` or `cuda`: auto takes a GPU when the driver's device node is there.

    Raises:
        UsageError: A GPU is wanted, and there is none.
    """
    has_gpu = Path("/dev/nvidiactl").exists()
    if wanted == "cuda" and not has_gpu:
        raise UsageError("There is no NVIDIA GPU on this machine. Use --device cpu or auto.")
    return "cuda" if wanted != "cpu" and has_gpu else "cpu"
