"""Who may examine, who has a free place, and how a node that is lost is told from a process that died."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.cluster import node_work, nodes
from grader.cluster.cluster_start import ReachedCluster
from grader.cluster.node_orders import NodeBusy, NodeReady, NodeSurvey, NodeUnready, RunOrder
from grader.cluster.nodes import Node, NodeLost, Nodes
from grader.domain.assignment import Assignment
from grader.domain.errors import SandboxError, UsageError
from grader.domain.evidence import Attestation

VERSIONS = {"grader": "1", "torch": "2"}
STRICT = Attestation("strict")


class FakeFuture:
    """An answer that comes when somebody gives it; if that is this class, it is gone with its process."""

    def __init__(self) -> None:
        self.status = "pending"
        self._value: Any = None
        self._callbacks: list[Callable[[Any], None]] = []
        self.released = False

    def give(self, value: Any) -> None:
        self._value = value
        self.status = "error" if isinstance(value, Exception) else "finished"
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)
        if self.status != "pending":
            callback(self)

    def result(self, timeout: float) -> Any:
        if self._value is FakeFuture:
            raise TimeoutError
        return self._value

    def exception(self) -> Any:
        return self._value

    def release(self) -> None:
        self.released = True


@dataclass
class FakeCluster:
    """What a client of Dask tells and takes.

    Attributes:
        workers: Address -> what the scheduler says of it.
        surveys, answers: Address -> what it says of itself, and what it answers when it is to get ready.
        asked: (address, function, future) of everything else.
    """

    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    surveys: dict[str, NodeSurvey] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, Any, FakeFuture]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    status: str = "running"

    def join(self, name: str, *, places: int = 1, nanny: str = "", host: str = "", **said: Any) -> str:
        address = f"tls://{name}:{len(self.surveys)}"
        self.surveys[address] = NodeSurvey(name, said.get("versions", VERSIONS), said.get("seconds_left"))
        self.answers[address] = said.get("answer", NodeReady(STRICT, said.get("device", "cpu")))
        self.workers[address] = {"name": name, "host": host or name, "nanny": nanny, "nthreads": places}
        return address

    @property
    def scheduler(self) -> Any:
        return SimpleNamespace(identity=lambda n_workers: {"workers": dict(self.workers)})

    def sync(self, function: Callable[..., Any], **options: Any) -> Any:
        return function(**options)

    def submit(self, function: Any, *arguments: Any, workers: list[str], **options: Any) -> FakeFuture:
        [address] = workers
        future = FakeFuture()
        if function is node_work.survey:
            future.give(self.surveys[address])
        elif function is node_work.prepare:
            answer = self.answers[address]
            future.give(answer.pop(0) if isinstance(answer, list) else answer)
        else:
            self.asked.append((address, function, future))
        return future

    def run(self, function: Any, *arguments: Any, **options: Any) -> None:
        self.told.append(function)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster without nodes, at which a look takes no time and a lost process is waited for shortly."""
    monkeypatch.setattr(nodes, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(nodes, "RETURN_SECONDS", 0.3)
    return FakeCluster()


@pytest.fixture
def opened(cluster: FakeCluster, assignment: Assignment) -> Callable[..., Any]:
    """`with opened() as (nodes, said)`: the nodes of a run, and the sentences about them."""

    @contextmanager
    def made(**reached: Any) -> Iterator[tuple[Nodes, list[str]]]:
        said: list[str] = []
        order = RunOrder("run", "results", assignment, b"", "standard", False, "auto")
        cluster_reached = ReachedCluster(cast(Any, cluster), reached.pop("expected", None), **reached)
        with Nodes(cluster_reached, order, VERSIONS, said.append) as watched:
            yield watched, said

    return made


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_node_that_is_ready_gives_its_places(cluster: FakeCluster, opened: Callable[..., Any]) -> None:
    cluster.join("lab1", places=4)
    cluster.join("lab2", places=2)
    with opened() as (watched, said):
        watched.wait_for_one()
        wait_until(lambda: watched.places == 6)
        assert watched.device == "cpu" and watched.names() == ["lab1", "lab2"]
    assert sorted(said) == ["lab1: ready, 4 at once, strict.", "lab2: ready, 2 at once, strict."]
    assert cluster.told[-1] is node_work.release


def test_the_least_busy_node_is_next_and_no_place_is_given_twice(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("large", places=3)
    cluster.join("small", places=1)
    with opened() as (watched, _):
        wait_until(lambda: watched.places == 4)
        places = [watched.place(alone=False, seconds=0) for _ in range(4)]
        names = [place.__enter__().name for place in places]
        assert sorted(names) == ["large", "large", "large", "small"]
        late: list[str] = []

        def fifth() -> None:
            with watched.place(alone=False, seconds=0) as node:
                late.append(node.name)

        waiting = threading.Thread(target=fifth)
        waiting.start()
        time.sleep(0.1)
        assert not late
        freed = names.index("small")
        places.pop(freed).__exit__(None, None, None)
        waiting.join(10)
        assert late == ["small"]
        for place in places:
            place.__exit__(None, None, None)


def test_whoever_is_to_be_alone_waits_until_nothing_else_runs_there(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("lab1", places=2)
    with opened() as (watched, _):
        watched.wait_for_one()
        events: list[str] = []

        def alone() -> None:
            with watched.place(alone=True, seconds=0):
                events.append("alone")
                time.sleep(0.1)
                events.append("alone no more")

        with watched.place(alone=False, seconds=0):
            waiting = threading.Thread(target=alone)
            waiting.start()
            time.sleep(0.1)
            events.append("the other ends")
        wait_until(lambda: "alone" in events)
        with watched.place(alone=False, seconds=0):
            events.append("the next one")
        waiting.join(10)
    assert events == ["the other ends", "alone", "alone no more", "the next one"]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"versions": {"grader": "1", "torch": "1"}}, "lab2: It has torch 1, and this machine torch 2"),
        ({"answer": SandboxError("Too little isolation.")}, "lab2: Too little isolation."),
        ({"device": "cuda"}, "lab2: It trains on 'cuda', and others on 'cpu'"),
    ],
)
def test_a_node_that_cannot_be_used_is_named_and_the_others_go_on(
    cluster: FakeCluster, opened: Callable[..., Any], said: dict[str, Any], sentence: str
) -> None:
    cluster.join("lab1")
    with opened(expected=2) as (watched, sentences):
        watched.wait_for_one()
        cluster.join("lab2", **said)
        wait_until(lambda: len(sentences) == 2)
        assert sentences[1].startswith(sentence)
        assert watched.names() == ["lab1"] and watched.places == 1


def test_without_a_usable_node_the_run_says_why_and_ends(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("lab1", answer=SandboxError("Too little isolation."))
    with (
        opened(expected=2, complaints=lambda: ("lab2: its process ended: Permission denied",)) as (
            watched,
            _,
        ),
        pytest.raises(SandboxError, match="No node can be used") as refused,
    ):
        watched.wait_for_one()
    assert "lab1: Too little isolation." in str(refused.value)
    assert "lab2: its process ended: Permission denied" in str(refused.value)


def test_hosts_whose_own_names_end_like_those_of_parts_are_told_apart(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    """Or a run would wait for minutes for the second one, and tell of one of them alone."""
    for name in ("lab-gpu1", "lab-gpu2"):
        cluster.join(name, answer=SandboxError("Too little isolation."))
    cluster.join("box/gpu0", answer=SandboxError("Too little isolation."))
    cluster.join("box/gpu1", answer=SandboxError("Too little isolation."))
    with opened(expected=3) as (watched, _), pytest.raises(SandboxError, match="No node can be") as refused:
        watched.wait_for_one()
    assert all(f"{name}: Too little" in str(refused.value) for name in ("lab-gpu1", "lab-gpu2"))


def test_a_machine_of_which_one_gpu_cannot_be_used_is_waited_for(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    """When the process of its other one is started again, no node is there for a moment."""
    address = cluster.join("box/gpu1")
    with opened(expected=1) as (watched, said):
        watched.wait_for_one()
        cluster.join("box/gpu0", answer=SandboxError("Its GPU is not usable."))
        wait_until(lambda: "box/gpu0: Its GPU is not usable." in said)
        del cluster.workers[address]
        wait_until(lambda: not watched.names())
        joining = threading.Timer(0.2, cluster.join, ["box/gpu1"])
        joining.start()
        watched.wait_for_one()


def test_a_run_without_nodes_ends_in_the_end_unless_a_queue_may_bring_some(
    cluster: FakeCluster, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "PATIENCE_SECONDS", 0.1)
    with opened() as (watched, _), pytest.raises(UsageError, match="No node has been there for 0 s"):
        watched.wait_for_one()
    with opened(waits_long=True) as (watched, _):
        joining = threading.Timer(0.5, cluster.join, ["lab1"])
        joining.start()
        watched.wait_for_one()


def asked_until_lost(watched: Nodes, node: Node) -> NodeLost:
    """The loss of a node that was asked."""
    with pytest.raises(NodeLost) as loss:
        watched.asked(node, str)
    return loss.value


@pytest.mark.parametrize(
    ("nanny", "host", "again", "lives"),
    [
        ("tls://nanny:1", "a", {"nanny": "tls://nanny:1", "host": "a"}, True),
        ("tls://nanny:1", "a", {"nanny": "tls://nanny:2", "host": "a"}, False),
        ("", "a", {"host": "a"}, True),
        ("", "a", {"host": "b"}, False),
        ("tls://nanny:1", "a", None, False),
    ],
)
def test_a_process_that_comes_back_on_its_node_is_told_from_a_node_that_is_gone(
    cluster: FakeCluster,
    opened: Callable[..., Any],
    nanny: str,
    host: str,
    again: dict[str, str] | None,
    lives: bool,
) -> None:
    address = cluster.join("lab1", nanny=nanny, host=host)
    with opened() as (watched, said):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:
            del cluster.workers[address]
            if again is not None:
                cluster.join("lab1", **again)
            assert asked_until_lost(watched, node).lives is lives
    how = "its process died and was started again" if lives else "is gone"
    assert f"lab1: {how}." in said


def test_a_node_that_ends_soon_takes_nothing_that_would_not_finish(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("short", seconds_left=nodes.MARGIN_SECONDS + 60)
    cluster.join("long", seconds_left=10_000)
    with opened() as (watched, _):
        wait_until(lambda: watched.places == 2)
        with watched.place(alone=False, seconds=600) as first:
            assert first.name == "long"
            with watched.place(alone=False, seconds=30) as second:
                assert second.name == "short"


def test_a_node_tells_how_long_it_lasts_by_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is set to another time than the coordinator's would get nothing, and the run would wait."""
    an_hour_ago = time.time() - 3600
    monkeypatch.setattr(node_work, "time", SimpleNamespace(time=lambda: an_hour_ago))
    monkeypatch.setenv(node_work.ENDS_VARIABLE, str(an_hour_ago + 1800))
    assert node_work.survey().seconds_left == 1800
    monkeypatch.delenv(node_work.ENDS_VARIABLE)
    assert node_work.survey().seconds_left is None
    monkeypatch.setenv(node_work.ENDS_VARIABLE, "4:00:00")
    with pytest.raises(UsageError, match="GRADER_NODE_ENDS is '4:00:00' there"):
        node_work.survey()


def test_where_no_node_lasts_long_enough_those_with_most_of_their_time_left_try(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    """Otherwise a run would wait for ever."""
    cluster.join("job", seconds_left=nodes.MARGIN_SECONDS + 60)
    with opened() as (watched, _):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=600) as node:
            assert node.name == "job"
        node.joined -= 100  # most of its time is over
        taken: list[str] = []

        def take() -> None:
            with watched.place(alone=False, seconds=600) as late:
                taken.append(late.name)

        waiting = threading.Thread(target=take)
        waiting.start()
        waiting.join(0.3)
        assert not taken
        cluster.join("new job", seconds_left=nodes.MARGIN_SECONDS + 160)
        waiting.join(10)
        assert taken == ["new job"]


def test_a_process_that_comes_back_at_the_end_of_its_node_s_time_is_not_suspect(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    seconds_left = nodes.MARGIN_SECONDS + 1
    address = cluster.join("job", nanny="tls://nanny:1", seconds_left=seconds_left)
    with opened() as (watched, _):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:
            del cluster.workers[address]
            cluster.join("job", nanny="tls://nanny:1", seconds_left=seconds_left)
            assert not asked_until_lost(watched, node).lives


def test_a_node_at_the_end_of_its_time_is_told_so(cluster: FakeCluster, opened: Callable[..., Any]) -> None:
    address = cluster.join("job", nanny="tls://nanny:1", seconds_left=nodes.MARGIN_SECONDS + 1)
    with opened() as (watched, said):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:
            del cluster.workers[address]
            assert not asked_until_lost(watched, node).lives
    assert "job: reached the end of its time." in said


def test_what_dask_takes_from_a_node_counts_as_its_loss(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    """Dask marks a task as failed when the process that runs it has died."""
    killed = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})
    address = cluster.join("lab1", nanny="tls://nanny:1")
    with opened() as (watched, _):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:

            def die() -> None:
                wait_until(lambda: bool(cluster.asked))
                cluster.asked[0][2].give(killed())
                del cluster.workers[address]

            threading.Thread(target=die).start()
            assert not asked_until_lost(watched, node).lives
    assert cluster.asked[0][2].released


def test_what_a_function_raises_there_is_raised_here(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("lab1")
    with opened() as (watched, _):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:

            def fail() -> None:
                wait_until(lambda: bool(cluster.asked))
                cluster.asked[0][2].give(ValueError("of the node"))

            threading.Thread(target=fail).start()
            with pytest.raises(ValueError, match="of the node"):
                watched.asked(node, str)


def test_the_nodes_hear_that_the_run_lives(
    cluster: FakeCluster, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_RENEW_SECONDS", 0.02)
    cluster.join("lab1")
    renewed: list[int] = []
    with opened(renew=lambda: renewed.append(1)) as (watched, _):
        watched.wait_for_one()
        wait_until(lambda: node_work.renew in cluster.told and len(renewed) > 1)


def test_a_node_at_work_on_another_run_is_asked_again(
    cluster: FakeCluster, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_BUSY_SECONDS", 0.02)
    busy = NodeBusy("Another run lasts here.")
    cluster.join("lab1", answer=[busy, busy, NodeReady(STRICT, "cpu")])
    with opened(expected=1) as (watched, said):
        watched.wait_for_one()
    assert said[:2] == [
        "lab1: is at work on another run, and joins when that is over.",
        "lab1: ready, 1 at once, strict.",
    ]


def test_a_node_that_left_the_run_is_made_ready_again_and_is_no_suspect(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("lab1", nanny="tls://nanny:1")
    with opened() as (watched, said):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:

            def leave() -> None:
                wait_until(lambda: bool(cluster.asked))
                cluster.asked[0][2].give(NodeUnready("The run was ended meanwhile."))

            threading.Thread(target=leave).start()
            assert not asked_until_lost(watched, node).lives
        wait_until(lambda: said.count("lab1: ready, 1 at once, strict.") == 2)
        with watched.place(alone=False, seconds=0) as again:
            assert again is not node


def test_an_answer_that_is_gone_with_its_process_is_not_waited_for(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    address = cluster.join("lab1", nanny="tls://nanny:1")
    with opened() as (watched, _):
        watched.wait_for_one()
        with watched.place(alone=False, seconds=0) as node:

            def die() -> None:
                wait_until(lambda: bool(cluster.asked))
                del cluster.workers[address]
                cluster.asked[0][2].give(FakeFuture)

            threading.Thread(target=die).start()
            assert not asked_until_lost(watched, node).lives


def test_a_node_whose_process_dies_again_and_again_while_it_gets_ready_is_left_alone(
    cluster: FakeCluster, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})
    submit = cluster.submit

    def deadly(function: Any, *arguments: Any, workers: list[str], **options: Any) -> FakeFuture:
        future = submit(function, *arguments, workers=workers, **options)
        if function is node_work.prepare:
            del cluster.workers[workers[0]]
            cluster.join("lab1", nanny="tls://nanny:1", answer=killed())
        return future

    monkeypatch.setattr(cluster, "submit", deadly)
    cluster.join("lab1", nanny="tls://nanny:1", answer=killed())
    with opened(expected=1) as (watched, _), pytest.raises(SandboxError, match="No node can be used") as told:
        watched.wait_for_one()
    assert "lab1: Its process died 3 times while it got ready." in str(told.value)


def test_a_node_that_is_refused_is_not_asked_again_and_its_next_process_is(
    cluster: FakeCluster, opened: Callable[..., Any]
) -> None:
    cluster.join("lab1")
    old = {"versions": {"grader": "1", "torch": "1"}}
    address = cluster.join("lab2", **old)
    with opened(expected=3) as (watched, said):
        wait_until(lambda: len(said) == 2)
        del cluster.workers[address]
        cluster.join("lab2", **old)
        time.sleep(0.2)
        assert len(said) == 2, "the same need not be said again"
        cluster.join("lab2")
        wait_until(lambda: watched.names() == ["lab1", "lab2"])


def test_without_a_scheduler_the_run_ends(cluster: FakeCluster, opened: Callable[..., Any]) -> None:
    cluster.join("lab1")
    with opened() as (watched, _):
        watched.wait_for_one()
        cluster.status = "connecting"
        with pytest.raises(UsageError, match="scheduler is gone"):  # noqa: PT012
            threading.Timer(0.2, setattr, [cluster, "status", "closed"]).start()
            with watched.place(alone=False, seconds=0):
                raise AssertionError("there is no place while nobody answers")
