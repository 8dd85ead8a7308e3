"""Grades a class on a cluster: the front door, which the command uses.

The coordinator takes in the download, sees which submissions have changed, and records the evidence, as on
one machine. A submission is packed when there is a place for it on a node, and its evidence comes back as a
whole. Whatever happens to a node costs no student anything: a submission goes to another one, and if it takes
two processes with it, a person looks.
"""

import contextlib
import hashlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.cluster import node_work
from grader.cluster.cluster_start import reached
from grader.cluster.node_orders import ExamineOrder, RunOrder, pack_folder, packed_files
from grader.cluster.nodes import Node, NodeLost, Nodes
from grader.cluster.where import Where
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.limits import Limits
from grader.files.folder_lock import locked_folder
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.examiner import ClassWork, SubmissionWork
from grader.grading.run import EvidenceBuilder, RunBasis
from grader.grading.submission_run import blank_evidence

MOST_AT_ONCE = 512  # submissions that the coordinator waits for
MOST_DEATHS = 2  # of the process that examined a submission, until a person looks
MOST_LOSSES = 5  # of nodes, in whatever way, until a person looks
_FOLDER = ".cluster"  # in the folder of the results, locked while a cluster is at work for it
_LASTING = 1.5  # times the longest submission so far: what a node must have left


@dataclass(frozen=True)
class ClusterMachines:
    """The nodes of a cluster as the machines that a class is examined on.

    Args:
        where: Which.
        say: Called with a sentence on what happened to a node.
    """

    where: Where
    local_jobs: int
    say: Callable[[str], None]

    @property
    def page_processes(self) -> int:
        """One for each processor core: the coordinator has nothing else to compute."""
        return len(os.sched_getaffinity(0))

    def threads(self, jobs: int) -> int:
        """As many as nodes may have places, whenever they come."""
        return MOST_AT_ONCE

    @contextlib.contextmanager
    def examiner(self, work: ClassWork) -> Iterator["OnNodes"]:
        """An examiner that hands submissions to nodes."""
        assignment = work.basis.assignment
        order = RunOrder(
            run_id=secrets.token_hex(16),
            results=_stand_in(work.out),
            assignment=assignment,
            files=pack_folder(assignment.folder),
            minimum_level=work.course.minimum_level,
            unofficial=work.unofficial,
            device="cpu" if work.basis.splits is None else work.device,
        )
        with (
            _alone(work.out),
            reached(self.where, self.local_jobs) as cluster,
            Nodes(cluster, order, node_work.versions_here(), self.say) as nodes,
        ):
            examiner = OnNodes(work.basis, order, nodes)
            cluster.client.subscribe_topic(node_work.topic(order.run_id), examiner.note)
            nodes.wait_for_one()
            yield examiner


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Have no other grading on a cluster for the same results: each would take the other's nodes for left.

    Raises:
        UsageError: There is one.
    """
    place = out / _FOLDER
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked_folder(place, wait=False))
        except BlockingIOError:
            raise UsageError(
                f"{out}: another grading on a cluster is at work for it. Wait until that ends, or end it."
            ) from None
        yield


def _stand_in(out: Path) -> str:
    """What stands for a folder of this machine, and does not name it."""
    return hashlib.sha256(f"{socket.gethostname()}\0{out.resolve()}".encode()).hexdigest()


class OnNodes:
    """Examines submissions on nodes: see `grader.grading.examiner.Examiner`."""

    def __init__(self, run: RunBasis, order: RunOrder, nodes: Nodes) -> None:
        self.run = run
        self._order = order
        self._nodes = nodes
        self._watchers: dict[str, tuple[str, Watcher]] = {}
        self._longest = 0.0

    @property
    def device(self) -> str:
        """Where training runs."""
        return self._nodes.device

    @property
    def places(self) -> int:
        """How many are examined at once now."""
        return self._nodes.places

    def examined(self, work: SubmissionWork, *, graded_at: datetime, watch: Watcher) -> EvidenceBuilder:
        """The evidence of a submission."""
        if work.earlier is None:
            known = blank_evidence(self.run, work.submission, attempt=work.attempt, graded_at=graded_at)
        else:
            known = replace(work.earlier, graded_at=graded_at)
        builder = self._somewhere(work, known, watch)
        watch(Progress(work.submission.student_id, GradingStage.DONE, 1.0))
        return builder

    def note(self, event: tuple[float, Mapping[str, object]]) -> None:
        """Pass on what a node reports."""
        told = event[1]
        student_id = str(told["student_id"])
        node, watch = self._watchers.get(student_id, ("", None))
        if watch is not None:
            share, text = told["share"], str(told["text"])
            assert isinstance(share, float | int)
            text = f"{text}, on {node}" if text else f"on {node}"
            watch(Progress(student_id, GradingStage(str(told["stage"])), float(share), text))

    def _somewhere(self, work: SubmissionWork, known: Evidence, watch: Watcher) -> EvidenceBuilder:
        """Have a submission examined by nodes until one has done it.

        Args:
            known: What is known of it before.
        """
        student_id = work.submission.student_id
        deaths: list[str] = []
        losses: list[str] = []
        while len(deaths) < MOST_DEATHS and len(losses) < MOST_LOSSES:
            with self._nodes.place(alone=bool(deaths), seconds=_LASTING * self._longest) as node:
                began = time.monotonic()
                watch(Progress(student_id, GradingStage.READING, 0.0, f"on {node.name}"))
                self._watchers[student_id] = (node.name, watch)
                try:
                    builder = self._on(node, work, known)
                except NodeLost as loss:
                    losses.append(loss.node)
                    deaths += [loss.node] if loss.lives else []
                    continue
                finally:
                    del self._watchers[student_id]
            self._longest = max(self._longest, time.monotonic() - began)
            return builder
        return EvidenceBuilder(replace(known, status="engine_error", reason=_set_aside(deaths, losses)))

    def _on(self, node: Node, work: SubmissionWork, known: Evidence) -> EvidenceBuilder:
        """The evidence that one node finds.

        Raises:
            NodeLost: It was lost.
        """
        submission, splits = work.submission, self.run.splits
        order = ExamineOrder(
            run_id=self._order.run_id,
            work=replace(work, submission=replace(submission, files=())),
            files=packed_files(submission, _largest_mb(self.run.assignment.limits)),
            draws=self.run.draw(submission),
            data_digest="" if splits is None else splits.digest(work.attempt),
            graded_at=known.graded_at,
        )
        try:
            self._send_data(node, work.attempt)
            evidence, pictures = self._nodes.asked(node, node_work.examine, order)
        except NodeLost:
            raise
        except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
            reason = f"The node {node.name} failed: {type(error).__name__}: {error}"
            return EvidenceBuilder(replace(known, status="engine_error", reason=reason, node=node.name))
        return EvidenceBuilder(replace(evidence, node=node.name), dict(pictures))

    def _send_data(self, node: Node, attempt: int) -> None:
        """Send a node the data of an attempt, unless it has them."""
        splits = self.run.splits
        if splits is None:
            return
        with node.sending:
            digest = splits.digest(attempt)
            if digest not in node.data:
                self._nodes.asked(node, node_work.take_data, self._order.run_id, digest, splits.of(attempt))
                node.data.add(digest)


def _largest_mb(limits: Limits) -> float:
    """The size above which a file is refused, whatever it is for, in 10**6 bytes."""
    return max(limits.file_mb, limits.checkpoint_mb, limits.notebook_mb, limits.source_kb / 1000)


def _set_aside(deaths: list[str], losses: list[str]) -> str:
    if len(deaths) >= MOST_DEATHS:
        return (
            f"The process that examined it died {len(deaths)} times, on {' and '.join(deaths)}, the last "
            "time with nothing beside it. Nobody knows why: look at the submission, and grade it again."
        )
    return (
        f"{len(losses)} nodes were lost while they examined it ({', '.join(losses)}). That costs the student "
        "nothing: grade it again, and if nodes end too early, give them more time."
    )
