"""Which nodes are started again, when, and which are given up with the reason."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.cluster import node_supervision
from grader.cluster.node_supervision import FIRST_WAIT, LONGEST_WAIT, SHORT_LIFE, Supervision


@dataclass
class FakeNode:
    """A node that ends when it is told why."""

    node_name: str
    fate: str = ""
    advice: str = ""
    note: str = ""
    closed: bool = False

    async def close(self) -> None:
        self.closed = True


@dataclass
class FakeCluster:
    """What supervision asks of a cluster of Dask."""

    names: tuple[str, ...] = ("lab1", "lab2")
    workers: dict[str, FakeNode] = field(default_factory=dict)
    scheduler: Any = field(default_factory=lambda: SimpleNamespace(workers={}))
    started: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        asyncio.run(self._correct_state())

    async def _correct_state(self) -> None:
        for name in self.names:
            if name not in self.workers:
                self.workers[name] = FakeNode(name)
                self.started.append(name)

    def sync(self, function: Any, *arguments: Any) -> None:
        asyncio.run(function(*arguments))

    def join(self, *names: str) -> None:
        self.scheduler.workers = {name: SimpleNamespace(name=name) for name in names}


@dataclass
class Clock:
    """The time, which passes when it is told to."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(node_supervision, "time", clock)
    return clock


@pytest.fixture
def cluster(clock: Clock) -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def watched(cluster: FakeCluster) -> Supervision:
    return Supervision(cast(Any, cluster))


def test_a_node_that_never_joined_is_given_up_with_the_reason(
    cluster: FakeCluster, watched: Supervision
) -> None:
    cluster.workers["lab1"].fate, cluster.workers["lab1"].advice = "lab1: no login.", "Try: ssh lab1"
    assert watched.complaints() == ("lab1: no login. Try: ssh lab1",)
    watched.renew()
    assert cluster.started == ["lab1", "lab2"] and watched.notes() == ()


def test_a_node_that_has_lived_long_is_started_again_at_once(
    cluster: FakeCluster, watched: Supervision, clock: Clock
) -> None:
    cluster.join("lab1", "lab2")
    watched.renew()
    clock.now += SHORT_LIFE + 1
    ended = cluster.workers["lab1"]
    ended.fate = "lab1: lost."
    assert watched.complaints() == () and watched.notes() == ("lab1: lost.",)
    watched.renew()
    assert cluster.started == ["lab1", "lab2", "lab1"]
    assert ended.closed and not cluster.workers["lab1"].fate and watched.notes() == ()


def test_one_that_keeps_ending_at_once_waits_longer_each_time(
    cluster: FakeCluster, watched: Supervision, clock: Clock
) -> None:
    waits = []
    for _ in range(10):
        cluster.join("lab1")
        watched.renew()
        cluster.workers["lab1"].fate = "lab1: lost."
        before, began = len(cluster.started), clock.now
        while len(cluster.started) == before:
            watched.renew()
            clock.now += 1
        waits.append(round(clock.now - 1 - began))
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT and set(cluster.started) == {"lab1", "lab2"}


def test_a_node_with_a_process_for_each_gpu_has_joined_with_the_first(
    cluster: FakeCluster, watched: Supervision
) -> None:
    cluster.join("lab1/gpu0", "lab2-gpu1")
    watched.complaints()
    cluster.workers["lab1"].fate, cluster.workers["lab2"].fate = "lab1: lost.", "lab2: no login."
    assert watched.complaints() == ("lab2: no login.",)
    assert watched.notes() == ("lab1: lost.",)


def test_what_people_should_know_of_a_node_that_may_come_is_told(
    cluster: FakeCluster, watched: Supervision
) -> None:
    cluster.workers["lab2"].note = "lab2: waits in the queue."
    assert watched.notes() == ("lab2: waits in the queue.",) and watched.complaints() == ()
