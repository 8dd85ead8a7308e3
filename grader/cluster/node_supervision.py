"""Starts nodes of a run again that have ended, and tells why others never came.

A node that has never joined is not started again: its login or its Python is wrong, and trying on would only
annoy its machine. One that has joined comes back after a wait, which grows while it keeps ending at once.
"""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from distributed import SpecCluster
from distributed.deploy.cluster import Cluster

from grader.cluster.node_process import machine_of

SHORT_LIFE = 60.0  # seconds: a node that ends within them would probably do so again
FIRST_WAIT = 5.0
LONGEST_WAIT = 600.0


class Supervised(Protocol):
    """A node's process or job, as a cluster of Dask holds it.

    Attributes:
        node_name: How its processes are called, or how their names begin.
        fate: Why it has ended, in a sentence; empty while it has not.
        advice: What to do about that if it has never joined.
        note: What else people should know of it, in a sentence.
    """

    node_name: str
    fate: str
    advice: str
    note: str

    async def close(self) -> None:
        """End what is left of it."""


class LastingCluster(SpecCluster):
    """A cluster that keeps a node whose process is gone for a while.

    Dask would end the node itself if its process did not come back within seconds.
    """

    def _update_worker_status(self, op: Any, msg: Any) -> None:
        Cluster._update_worker_status(self, op, msg)


@dataclass
class _Life:
    """What a node did so far.

    Attributes:
        joined: When it was first seen, since it was last started; None: it was not.
        ever: Whether it has joined at all.
        short: How many of its lives were short, without a long one since.
        again: When it is to be started again; None: it runs, or is given up.
    """

    joined: float | None = None
    ever: bool = False
    short: int = 0
    again: float | None = None


@dataclass
class Supervision:
    """The nodes of a cluster that this run has started.

    Args:
        cluster: Its workers are `Supervised`.
    """

    cluster: SpecCluster
    _lives: dict[str, _Life] = field(default_factory=dict)

    def complaints(self) -> tuple[str, ...]:
        """A sentence for each node that will not come."""
        self._note_joined()
        return tuple(
            f"{node.fate} {node.advice}".rstrip()
            for name, node in self._nodes()
            if node.fate and not self._life(name).ever
        )

    def notes(self) -> tuple[str, ...]:
        """A sentence for each node of which people should know something, though it may come."""
        nodes = list(self._nodes())
        ended = [node.fate for name, node in nodes if node.fate and self._life(name).ever]
        return (*ended, *(node.note for _, node in nodes if node.note))

    def renew(self) -> None:
        """Start nodes again that have ended, once it is time."""
        self._note_joined()
        ended = [(name, node) for name, node in self._nodes() if node.fate and self._life(name).ever]
        if due := [(name, node) for name, node in ended if self._is_due(self._life(name))]:
            self.cluster.sync(self._started_again, due)

    def _nodes(self) -> Iterable[tuple[str, Supervised]]:
        return list(self.cluster.workers.items())

    def _life(self, name: str) -> _Life:
        return self._lives.setdefault(name, _Life())

    def _note_joined(self) -> None:
        there: list[str] = []
        assert self.cluster.scheduler is not None
        with contextlib.suppress(RuntimeError):  # the scheduler changes it in its own thread
            workers = list(self.cluster.scheduler.workers.values())
            there = [machine_of(str(worker.name)) for worker in workers]
        for name, node in self._nodes():
            life = self._life(name)
            if life.joined is None and not node.fate and node.node_name in there:
                life.joined, life.ever = time.monotonic(), True

    def _is_due(self, life: _Life) -> bool:
        now = time.monotonic()
        if life.again is None:
            lived = 0.0 if life.joined is None else now - life.joined
            life.short = life.short + 1 if lived < SHORT_LIFE else 0
            life.joined = None
            wait = 0.0 if not life.short else FIRST_WAIT * 2.0 ** (life.short - 1)
            life.again = now + min(wait, LONGEST_WAIT)
        return now >= life.again

    async def _started_again(self, due: list[tuple[str, Supervised]]) -> None:
        for name, node in due:
            del self.cluster.workers[name]
            await node.close()
            self._life(name).again = None
        await self.cluster._correct_state()
