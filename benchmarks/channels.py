"""What two workers side by side can tell each other: a sender and a receiver behind all layers.

Both know when they start and what the first bits are. The receiver learns from those where the border between
0 and 1 lies. A channel's rate is that of a binary symmetric channel: the bits of a second, times
1 - H(share of wrong bits). Where the share does not differ from a half (95 % interval), nothing was received.
"""

import json
import math
import os
import random
import statistics
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.section import Section
from grader.sandbox.host_client import Host, HostChild
from grader.sandbox.process_limits import ProcessLimits

HERE = Path(__file__).parent
KNOWN, BITS = 64, 512
SLOTS_MS = (1, 2, 5, 10, 20)
ROUNDS = 3
LIMITS = ProcessLimits(open_files=1024)  # a lock is held as long as its file is open
LABELS = 539
BITS_OF_A_LABEL = math.log2(6)


@dataclass(frozen=True)
class Received:
    """How well one message came through.

    Attributes:
        errors: The share of wrong bits.
        bits: How many were sent.
        seconds: How long that took.
    """

    errors: float
    bits: int
    seconds: float

    @property
    def rate(self) -> float:
        """Bits per second."""
        if abs(self.errors - 0.5) < 1.96 * 0.5 / math.sqrt(self.bits):
            return 0.0
        return self.bits / self.seconds * (1 - entropy(self.errors))


@dataclass(frozen=True)
class Pair:
    """Two workers, the second of which listens."""

    sender: HostChild
    receiver: HostChild


def measured(rounds: int = ROUNDS) -> Section:
    """Every channel's best rate."""
    with (
        Host.start("channel_worker", env={"PYTHONPATH": f"{HERE}:{HERE.parent}"}) as host,
        host.spawn(LIMITS) as sender,
        host.spawn(LIMITS) as receiver,
    ):
        pair = Pair(sender, receiver)
        rows, rates = [], []
        for name, channel in _channels().items():
            step, received = best(channel, pair, rounds)
            rows.append((name, step, f"{received.errors:.1%}", _figure(received.rate)))
            rates.append(received.rate)
            print(f"  {name}: {rows[-1][1:]}", flush=True)
    whole = LABELS * BITS_OF_A_LABEL
    return Section(
        "Channels between workers",
        f"Two locked-down workers on one machine: one sends {BITS} bits, the other hears them, {rounds} "
        "times; the median of the rates, for the length of a bit at which it is greatest. Rates are those of "
        "a binary symmetric channel (1 - H(share of wrong bits)); 0 where the share is a half.",
        ("what carries it", "a bit takes", "wrong bits", "bits/s"),
        tuple(rows),
        (
            f"The fastest one would carry the {whole:.0f} bits of {LABELS} labels of six classes in "
            f"{whole / max(rates):.1f} s, if a worker knew them; none does.",
        ),
    )


def best(channel: "Channel", pair: Pair, rounds: int) -> tuple[str, Received]:
    """The length of a bit with the greatest rate, in words, and the median message of that length."""
    medians = []
    for wait in channel.slots_ms:
        messages = sorted(
            (channel.message(pair, wait / 1000) for _ in range(rounds)), key=lambda each: each.rate
        )
        medians.append(messages[len(messages) // 2])
    received = max(medians, key=lambda each: each.rate)
    length = received.seconds / received.bits
    return (f"{length * 1e6:.0f} µs" if length < 0.001 else f"{length * 1e3:.1f} ms"), received


def entropy(share: float) -> float:
    """H of a share, in bits."""
    return -sum(p * math.log2(p) for p in (share, 1 - share) if p > 0)


def decoded(heard: Sequence[float], known: Sequence[int]) -> list[int]:
    """The bits after the known ones, by the border between the values that those have."""
    values = [[value for value, bit in zip(heard, known, strict=False) if bit == which] for which in (0, 1)]
    zero, one = map(statistics.median, values)
    return [int((value > (zero + one) / 2) == (one > zero)) for value in heard[len(known) :]]


@dataclass(frozen=True)
class Channel:
    """One way to tell something.

    Attributes:
        message: Sends random bits over it, in slots of so many seconds.
        slots_ms: The lengths of slots to try; one, of no meaning, where a bit takes as long as it takes.
    """

    message: Callable[[Pair, float], Received]
    slots_ms: tuple[int, ...] = SLOTS_MS


def _channels() -> dict[str, Channel]:
    """Every channel by its name."""
    processors = sorted(os.sched_getaffinity(0))
    same, apart = (processors[0], processors[0]), (processors[0], processors[-1])

    def slotted(kind: str, where: tuple[int, int]) -> Channel:
        return Channel(lambda pair, seconds: by_slots(pair, kind, where, seconds))

    def placed(kind: str, places: Callable[[], list[str]]) -> Channel:
        return Channel(lambda pair, _: by_places(pair, kind, places(), apart), (0,))

    return {
        "processor time, on one core": slotted("time", same),
        "caches and memory, from core to core": slotted("memory", apart),
        "names that were looked up": placed("names", _new_names),
        "files that were read for the first time": placed("pages", _cold_files),
        "locks of files (closed)": placed("locks", _files),
        "numbers of pipes (closed)": slotted("numbers", same),
    }


def by_slots(pair: Pair, channel: str, processors: tuple[int, int], seconds: float) -> Received:
    """One message, sent by doing something or nothing in slots of time."""
    bits = _message()
    start = time.monotonic() + 0.1
    order = {"channel": channel, "start": start, "seconds": seconds, "slots": len(bits)}
    _tell(pair.sender, {**order, "bits": bits, "processor": processors[0]})
    _tell(pair.receiver, {**order, "bits": None, "processor": processors[1]})
    _answer(pair.sender)
    return _received(_answer(pair.receiver), bits, seconds * BITS)


def by_places(pair: Pair, channel: str, paths: list[str], processors: tuple[int, int]) -> Received:
    """One message, sent by touching some of the places and then hearing which ones."""
    bits = _message()
    started = time.perf_counter()
    order = {"channel": channel, "paths": paths}
    _tell(pair.sender, {**order, "bits": bits, "processor": processors[0]})
    _answer(pair.sender)
    _tell(pair.receiver, {**order, "bits": None, "processor": processors[1]})
    heard = _answer(pair.receiver)
    return _received(heard, bits, (time.perf_counter() - started) * BITS / len(bits))


def _message() -> list[int]:
    """Known bits, and then as many that nobody knows."""
    dice = random.SystemRandom()
    return [number % 2 for number in range(KNOWN)] + [dice.randrange(2) for _ in range(BITS)]


def _received(heard: list[float], bits: list[int], seconds: float) -> Received:
    found = decoded(heard, bits[:KNOWN])
    wrong = sum(a != b for a, b in zip(found, bits[KNOWN:], strict=True))
    return Received(wrong / BITS, BITS, seconds)


def _new_names() -> list[str]:
    """Names that nobody asked for yet, in a folder that every worker sees."""
    nonce = random.SystemRandom().getrandbits(60)
    folder = sysconfig.get_path("stdlib")
    return [f"{folder}/{nonce:x}-{number}" for number in range(KNOWN + BITS)]


def _files() -> list[str]:
    """Files that every worker sees and none needs."""
    headers = sorted(Path(sysconfig.get_path("purelib"), "torch", "include").rglob("*.h"))
    found = [str(path) for path in headers if path.stat().st_size > 2000]
    return random.SystemRandom().sample(found, KNOWN + BITS)


def _cold_files() -> list[str]:
    """Such files, taken out of memory."""
    found = _files()
    for path in found:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return found


def _tell(worker: HostChild, order: dict[str, object]) -> None:
    worker.writer.write(json.dumps(order).encode() + b"\n")
    worker.writer.flush()


def _answer(worker: HostChild) -> list[float]:
    line = b""
    while not line.endswith(b"\n"):
        part = worker.reader.read(65_536)
        if not part:
            raise RuntimeError("A worker of the channels' benchmark died.")
        line += part
    heard: list[float] = json.loads(line)
    return heard


def _figure(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}" if rate else "0"
