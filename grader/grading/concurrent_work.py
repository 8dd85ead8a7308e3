"""Work on several submissions at a time: threads, slots on the device, and progress.

It runs the same work for many items, some of them at once, and ends all of it when one fails or somebody
interrupts. It keeps how many may train on the device at once, or one alone; `devices` decides that number. It
defines how the progress of a run is reported. It knows nothing about the work itself.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


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


# --- slots on a device -----------------------------------------------------------------------------------


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
