"""The nodes of a run as the coordinator sees them: who is ready, who has a free place, who was lost, and how.

It makes nodes ready when they join, asks each to prove its isolation first, and hands out places. It tells
the loss of a node from the death of its process on a node that lives. It knows nothing of submissions.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future

from grader.cluster import node_work
from grader.cluster.cluster_start import ReachedCluster
from grader.cluster.node_orders import NodeBusy, NodeReady, NodeSurvey, NodeUnready, RunOrder
from grader.cluster.node_process import machine_of
from grader.domain.errors import Interruption, SandboxError, UsageError

_POLL_SECONDS = 0.3
_RENEW_SECONDS = 20.0
_PREPARE_SECONDS = 600.0
_SLOW_SECONDS = 60.0
# between two questions whether a node that is at work on another run is free
_BUSY_SECONDS = 5.0
# in which a node's answer arrives, or else it is looked whether the node is still there
_FETCH_SECONDS = 60.0
# for the word to the nodes that a run is over
_RELEASE_SECONDS = 20.0
# of a node's process while it gets ready, until the node is left alone
_MOST_EARLY_DEATHS = 3
# within which a killed process comes back on a node that lives: Python and Dask are loaded, maybe from afar
RETURN_SECONDS = 45.0
# without any node, before a run gives up
PATIENCE_SECONDS = 300.0
# before the end that a batch system has set
MARGIN_SECONDS = 30.0


class NodeLost(Interruption):
    """A node's process ended while it examined a submission.

    Attributes:
        node: Its name.
        lives: Whether the node itself is still there, so that what ran on it is suspect.
    """

    def __init__(self, node: str, *, lives: bool) -> None:
        super().__init__(f"{node} was lost.")
        self.node = node
        self.lives = lives


@dataclass
class Node:
    """A process that examines submissions.

    Attributes:
        places: Submissions at once.
        ready: What it answered when it was ready; None before.
        lost: Set when it is gone.
        returned: Whether its process came back on the same node, after it was lost.
        data: The digests of the data that it has.
        busy: How many places are taken.
        alone: One submission has it for itself.
        sending: Held while data travel to it.
        joined: When, by the monotonic clock of this machine.
        ends: When a batch system will end it, by the same clock: others may be set to another time.
    """

    name: str
    address: str
    host: str
    nanny: str
    places: int
    ready: NodeReady | None = None
    lost: threading.Event = field(default_factory=threading.Event)
    returned: bool = False
    data: set[str] = field(default_factory=set)
    busy: int = 0
    alone: bool = False
    sending: threading.Lock = field(default_factory=threading.Lock)
    joined: float = field(default_factory=time.monotonic)
    ends: float = float("inf")

    def seconds_left(self) -> float:
        """Until a batch system ends it."""
        return self.seconds_from(time.monotonic())

    def seconds_from(self, when: float) -> float:
        """How long it lasts from a time on."""
        return self.ends - when - MARGIN_SECONDS


class Nodes:
    """All nodes of a run. It may be used by several threads.

    Args:
        reached: The cluster.
        order: What a node gets before its first submission.
        versions: Package -> the version that a node must have.
        say: Called with a sentence on what happened to a node.
    """

    def __init__(
        self, reached: ReachedCluster, order: RunOrder, versions: dict[str, str], say: Callable[[str], None]
    ) -> None:
        self._reached = reached
        self._client: Client = reached.client
        self._order = order
        self._versions = versions
        self._say = say
        self._nodes: dict[str, Node] = {}
        # address -> name of the processes that take no submissions, and machine -> why
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._early_deaths: Counter[str] = Counter()
        self._said: set[str] = set()
        self._device = ""
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._over = threading.Event()
        self._without_since = time.monotonic()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Nodes":
        self._watching.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        with self._changed:
            self._changed.notify_all()
        self._watching.join(5)
        # a node that does not answer must not hold the run up
        releasing = threading.Thread(target=self._release, daemon=True)
        releasing.start()
        releasing.join(_RELEASE_SECONDS)

    def _release(self) -> None:
        with contextlib.suppress(Exception):  # whatever they hold goes with their lease
            self._client.run(node_work.release, self._order.run_id, on_error="ignore")

    @property
    def places(self) -> int:
        """How many submissions can be examined at once now."""
        with self._changed:
            return sum(node.places for node in self._nodes.values() if node.ready is not None)

    @property
    def device(self) -> str:
        """Where they train; empty while none is ready."""
        return self._device

    def names(self) -> list[str]:
        """The names of those that are ready."""
        with self._changed:
            return sorted(node.name for node in self._nodes.values() if node.ready is not None)

    def wait_for_one(self) -> None:
        """Wait until a node is ready.

        Raises:
            SandboxError: All isolate too little, or cannot be used.
            UsageError: None comes.
        """
        with self._changed:
            while not any(node.ready for node in self._nodes.values()):
                self._require_hope()
                self._changed.wait(_POLL_SECONDS)

    @contextlib.contextmanager
    def place(self, *, alone: bool, seconds: float) -> Iterator[Node]:
        """A place on a node, for as long as the context lasts.

        Args:
            alone: With nothing beside it.
            seconds: How long it will be needed, roughly: a node that ends before is left out.

        Raises:
            SandboxError, UsageError: There will be none.
        """
        with self._changed:
            while (node := self._free(alone, seconds)) is None:
                self._require_hope()
                self._changed.wait(1.0)
            node.busy += 1
            node.alone = alone
        try:
            yield node
        finally:
            with self._changed:
                node.busy -= 1
                node.alone = False
                self._changed.notify_all()

    def _free(self, alone: bool, seconds: float) -> Node | None:
        """The node with the largest share of free places."""
        if self._client.status != "running":
            return None
        free = [
            node
            for node in self._nodes.values()
            if node.ready is not None and not node.alone and node.busy < (1 if alone else node.places)
        ]
        whole = [node.seconds_from(node.joined) for node in self._nodes.values() if node.ready is not None]
        if whole and max(whole) <= seconds:
            seconds = max(whole) / 2  # none will last longer: one that has most of its time left tries
        lasting = [node for node in free if node.seconds_left() > seconds]
        return max(lasting, key=lambda node: (node.places - node.busy) / node.places, default=None)

    def _require_hope(self) -> None:
        """Raise if no node is there and none will come."""
        if self._over.is_set():
            raise UsageError("The run has ended.")
        if self._client.status in ("closing", "closed"):
            raise UsageError(
                "The cluster's scheduler is gone. What is done is kept: when it is there again, the same "
                "command continues from there."
            )
        if self._nodes:
            return
        refused = " ".join(self._reasons.values())
        asked = self._reached.expected
        if asked is not None and len(self._reasons) >= asked:
            raise SandboxError(f"No node can be used. {refused}")
        waited = time.monotonic() - self._without_since
        if waited > PATIENCE_SECONDS and not self._reached.waits_long:
            reasons = f" {refused}" if refused else ""
            raise UsageError(
                f"No node has been there for {waited:.0f} s.{reasons} What is done is kept: the same command "
                "continues from there."
            )

    # --- joining and leaving -----------------------------------------------------------------------------

    def _watch(self) -> None:
        renewed = time.monotonic()
        while not self._over.wait(_POLL_SECONDS):
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                self._look()
            self._hear_complaints()
            for note in self._reached.notes():
                self._say_once(note)
            if time.monotonic() - renewed > _RENEW_SECONDS:
                renewed = time.monotonic()
                # a node that does not answer must hold up neither this nor the next word to the others
                threading.Thread(target=self._renew, daemon=True).start()

    def _look(self) -> None:
        """Ask the scheduler who is there."""
        if self._client.status != "running":
            return
        # not by `scheduler_info`: the client overwrites its answer every two seconds with one without nodes
        scheduler = self._client.scheduler
        assert scheduler is not None  # since it is running
        told = self._client.sync(scheduler.identity, n_workers=-1)
        self._compare(told["workers"])

    def _compare(self, workers: dict[str, dict[str, Any]]) -> None:
        """Note who joined and who is gone."""
        with self._changed:
            gone = [node for address, node in self._nodes.items() if address not in workers]
            for node in gone:
                del self._nodes[node.address]
                threading.Thread(target=self._judge_loss, args=(node,), daemon=True).start()
            new = [
                Node(
                    name=str(worker["name"]),
                    address=address,
                    host=str(worker.get("host", "")),
                    nanny=str(worker.get("nanny") or ""),
                    places=max(int(worker["nthreads"]), 1),
                )
                for address, worker in workers.items()
                if address not in self._nodes and address not in self._refused
            ]
            for node in new:
                self._nodes[node.address] = node
                threading.Thread(target=self._make_ready, args=(node,), daemon=True).start()
            if self._nodes:
                self._without_since = time.monotonic()
            if gone or new:
                self._changed.notify_all()

    def _judge_loss(self, node: Node) -> None:
        """Find out whether the node lives on without its process, and tell whoever waits for it."""
        until = time.monotonic() + RETURN_SECONDS
        while not node.returned and time.monotonic() < until and not self._over.is_set():
            with self._changed:
                node.returned = any(
                    (node.nanny and other.nanny == node.nanny) or (not node.nanny and other.host == node.host)
                    for other in self._nodes.values()
                )
            time.sleep(_POLL_SECONDS)
        ended = node.seconds_left() < MARGIN_SECONDS
        # a batch system ends all processes of a node, and one may be started again before the last has ended
        node.returned = node.returned and not ended
        if not self._over.is_set():
            how = "reached the end of its time" if ended else "is gone"
            self._say(f"{node.name}: {'its process died and was started again' if node.returned else how}.")
        node.lost.set()

    def _make_ready(self, node: Node) -> None:
        try:
            if max(self._early_deaths[key] for key in (node.name, node.nanny)) >= _MOST_EARLY_DEATHS:
                raise UsageError(
                    f"Its process died {_MOST_EARLY_DEATHS} times while it got ready. Look at its memory and "
                    "at the log of its system."
                )
            survey = self._surveyed(node)
            if survey.seconds_left is not None:
                node.ends = time.monotonic() + survey.seconds_left
            self._require_same(survey)
            ready = self._prepared(node)
            with self._changed:
                self._device = self._device or ready.device
                if ready.device != self._device:
                    raise UsageError(
                        f"It trains on '{ready.device}', and others on '{self._device}', so results "
                        "would differ. Give --device cpu, or leave it out of the cluster."
                    )
                node.ready = ready
                self._reasons.pop(machine_of(node.name), None)
                self._early_deaths[node.name] = self._early_deaths[node.nanny] = 0
                self._changed.notify_all()
        except NodeLost:
            # a name may be an address, which is a new one each time, and so may be its nanny's
            self._early_deaths.update({node.name, node.nanny} - {""})
        except Exception as error:  # noqa: BLE001 - whatever it is, this node takes no submissions
            self._refuse(node, f"{node.name}: {error}")
        else:
            self._say(f"{node.name}: ready, {node.places} at once, {ready.isolation.level}.")

    def _surveyed(self, node: Node) -> NodeSurvey:
        """What a node says of itself, as soon as it has a free place."""
        # a coordinator that was killed may have left its submissions there, in every place
        with contextlib.suppress(Exception):  # if it cannot be told, the next question finds out
            order, workers = self._order, [node.address]
            self._client.run(
                node_work.give_way, order.results, order.run_id, workers=workers, on_error="ignore"
            )
        sentence = f"{node.name}: has not answered yet. It may be at work for others."
        waiting = threading.Timer(_SLOW_SECONDS, self._say_once, [sentence])
        waiting.daemon = True
        waiting.start()
        try:
            survey: NodeSurvey = self.asked(node, node_work.survey)
            return survey
        finally:
            waiting.cancel()

    def _prepared(self, node: Node) -> NodeReady:
        """What a node answers when it is ready, as soon as no other run is at work there."""
        while True:
            try:
                ready: NodeReady = self.asked(node, node_work.prepare, self._order, seconds=_PREPARE_SECONDS)
                return ready
            except NodeBusy:
                self._say_once(f"{node.name}: is at work on another run, and joins when that is over.")
                if node.lost.wait(_BUSY_SECONDS) or self._over.is_set():
                    raise NodeLost(node.name, lives=False) from None

    def _require_same(self, survey: NodeSurvey) -> None:
        differing = {
            package: installed
            for package, installed in survey.versions.items()
            if self._versions.get(package) != installed
        }
        if differing:
            has = ", ".join(f"{package} {installed}" for package, installed in differing.items())
            needs = ", ".join(f"{package} {self._versions.get(package)}" for package in differing)
            raise UsageError(
                f"It has {has}, and this machine {needs}: results could differ. Install the same."
            )

    def _refuse(self, node: Node, sentence: str) -> None:
        """Give a node no submissions, as long as its process is this one."""
        with self._changed:
            self._refused[node.address] = node.name
            self._nodes.pop(node.address, None)
            machine = machine_of(node.name)
            if not any(other.ready and machine_of(other.name) == machine for other in self._nodes.values()):
                self._reasons[machine] = sentence
            self._changed.notify_all()
        self._say_once(sentence)

    def _hear_complaints(self) -> None:
        """Note which nodes will not come, and why."""
        for complaint in self._reached.complaints():
            with self._changed:
                self._reasons[complaint.partition(":")[0]] = complaint
                self._changed.notify_all()
            self._say_once(complaint)

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._say(sentence)

    def _renew(self) -> None:
        """Tell the nodes that this run lives, and start those again that have ended."""
        with contextlib.suppress(Exception):  # a node that does not answer is found by the next look
            addresses = [node.address for node in list(self._nodes.values()) if node.ready is not None]
            self._client.run(node_work.renew, self._order.run_id, workers=addresses, on_error="ignore")
        if self._starting.acquire(blocking=False):
            try:
                with contextlib.suppress(Exception):  # it is tried again soon
                    self._reached.renew()
            finally:
                self._starting.release()

    # --- asking ------------------------------------------------------------------------------------------

    def asked(
        self, node: Node, function: Callable[..., Any], *arguments: Any, seconds: float | None = None
    ) -> Any:
        """What a function returns on a node.

        Args:
            seconds: How long it may take; None: as long as it takes.

        Raises:
            NodeLost: The node is gone, or its process.
            Exception: Whatever the function raises there.
        """
        answered = threading.Event()
        try:
            future: Future[Any] = self._client.submit(
                function,
                *arguments,
                workers=[node.address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
        except Exception as error:
            if self._client.status == "running":
                raise
            raise NodeLost(node.name, lives=False) from error
        future.add_done_callback(lambda _: answered.set())
        until = None if seconds is None else time.monotonic() + seconds
        try:
            while not answered.wait(_POLL_SECONDS):
                if node.lost.is_set() or self._over.is_set():
                    raise NodeLost(node.name, lives=node.returned)
                if until is not None and time.monotonic() > until:
                    raise UsageError(f"It did not answer within {seconds:.0f} s.")
            return self._answer(node, future)
        finally:
            future.release()

    def _answer(self, node: Node, future: "Future[Any]") -> Any:
        """The answer that a node has given.

        Raises:
            NodeLost: It was lost before the answer arrived, or does not know this run any more.
            Exception: Whatever the function raises there.
        """
        while future.status == "finished":
            try:
                return future.result(timeout=_FETCH_SECONDS)
            except TimeoutError:
                # an answer is gone with the process that held it, and nobody would say so
                if node.lost.is_set() or self._over.is_set():
                    raise NodeLost(node.name, lives=node.returned) from None
        error = future.exception() if future.status == "error" else None
        if isinstance(error, NodeUnready):
            with self._changed:
                if self._nodes.get(node.address) is node:
                    del self._nodes[node.address]  # the next look finds it, and makes it ready again
            node.lost.set()
            raise NodeLost(node.name, lives=False)
        if error is None or type(error).__module__.startswith("distributed"):
            # it was taken from the node, as happens when that is lost
            node.lost.wait(RETURN_SECONDS + 10)
            raise NodeLost(node.name, lives=node.returned)
        raise error
