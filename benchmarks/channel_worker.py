"""The host of `channels.py`: locked-down children that send bits or listen, as they are told."""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from grader.sandbox import forkserver

Act = Callable[[], object]
_SEVERAL_MB = 4_000_000  # more than a core's own caches hold
_MOST_MB = 24_000_000


def in_slots(send: Sequence[int] | None, act: Act, start: float, seconds: float, slots: int) -> list[float]:
    """Act in the slots of time that are to be sent as 1, or listen: how often it acted in each.

    Args:
        send: A bit for each slot; None: act in all of them.
        start: When the first slot begins, on the clock that all processes share.
        seconds: How long each is.
    """
    counts = []
    for number in range(slots):
        begin, end = start + number * seconds, start + (number + 1) * seconds
        while (now := time.monotonic()) < begin:
            time.sleep(begin - now)
        count = 0
        while (send is None or send[number]) and time.monotonic() < end:
            act()
            count += 1
        counts.append(float(count))
    return counts


def compute() -> None:
    """A few microseconds of a processor."""
    sum(range(200))


def walker(size: int) -> Act:
    """Reads so many bytes of memory, in parts of a hundredth of a millisecond or so."""
    memory = np.zeros(size // 8)
    parts = [memory[at : at + 16_384] for at in range(0, len(memory), 16_384)]
    place = 0

    def walk() -> None:
        nonlocal place
        parts[place].sum()
        place = (place + 1) % len(parts)

    return walk


def acting(channel: str, role: str) -> Act:
    """What is done in a slot of time."""
    if channel == "memory":
        return walker(_MOST_MB if role == "send" else _SEVERAL_MB)
    return compute


def look_up(path: str) -> None:
    """Ask for a name that is not there."""
    with contextlib.suppress(OSError):
        os.stat(path)  # noqa: PTH116 - it is timed


def read_once(path: str) -> None:
    """Read a file's first bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    os.read(descriptor, 16)
    os.close(descriptor)


class Locks:
    """Locks on files that everybody can read."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def take(self, path: str) -> None:
        """Hold the lock of a file until `release`."""
        self.held.append(os.open(path, os.O_RDONLY))
        fcntl.flock(self.held[-1], fcntl.LOCK_EX)

    def release(self) -> None:
        """Hold none."""
        while self.held:
            os.close(self.held.pop())

    def ask(self, path: str) -> float:
        """Whether somebody holds the lock of a file."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return float(error.errno == errno.EAGAIN)
        finally:
            os.close(descriptor)
        return 0.0


def pipe_number() -> float:
    """The kernel's number of a new pipe."""
    ends = os.pipe()
    number = os.fstat(ends[0]).st_ino
    for end in ends:
        os.close(end)
    return float(number)


def at_places(order: dict[str, Any], locks: Locks) -> list[float]:
    """Send or hear a bit at each of the order's paths: seconds that it took, or what was answered."""
    channel, bits = order["channel"], order["bits"]
    act = {"names": look_up, "pages": read_once, "locks": locks.take}[channel]
    if bits is not None:
        locks.release()
        for bit, path in zip(bits, order["paths"], strict=True):
            if bit:
                act(path)
        return []
    if channel == "locks":
        return [locks.ask(path) for path in order["paths"]]
    heard = []
    for path in order["paths"]:
        started = time.perf_counter()
        act(path)
        heard.append(time.perf_counter() - started)
    return heard


def by_numbers(order: dict[str, Any]) -> list[float]:
    """Send by making pipes in a slot, or hear how far their numbers have gone at the end of each."""
    start, seconds, slots = order["start"], order["seconds"], order["slots"]
    if order["bits"] is not None:
        return in_slots(order["bits"], pipe_number, start, seconds, slots)
    heard = []
    before = pipe_number()
    for number in range(slots):
        end = start + (number + 1) * seconds
        while (now := time.monotonic()) < end:
            time.sleep(end - now)
        heard.append((after := pipe_number()) - before)
        before = after
    return heard


def child(reader: BinaryIO, writer: BinaryIO) -> None:
    """Obey orders, a line of JSON each; answer with what was heard."""
    locks = Locks()
    for line in reader:
        order = json.loads(line)
        os.sched_setaffinity(0, {order["processor"]})
        if "paths" in order:
            heard = at_places(order, locks)
        elif order["channel"] == "numbers":
            heard = by_numbers(order)
        else:
            act = acting(order["channel"], "receive" if order["bits"] is None else "send")
            heard = in_slots(order["bits"], act, order["start"], order["seconds"], order["slots"])
        writer.write(json.dumps(heard).encode() + b"\n")
        writer.flush()


def prepare() -> None:
    """Nothing more to load."""


if __name__ == "__main__":
    forkserver.main(child, prepare)
