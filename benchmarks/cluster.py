"""A class on a cluster: what the coordinator can record, and how near the nodes come to the ideal time.

Submissions are replayed: a node waits as long as one took when it was measured, and answers with the evidence
that was found then. So many nodes fit on one machine, and what is measured is all that is not a node's work.
"""

import contextlib
import itertools
import logging
import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

from distributed import Nanny, Security, SpecCluster

from benchmarks.cluster_model import Costs, planned
from benchmarks.generated_class import ROOT
from benchmarks.section import Section, spread, verdict
from grader import __version__
from grader.cluster import cluster_grading, node_work
from grader.cluster.cluster_grading import ClusterMachines
from grader.cluster.cluster_start import ReachedCluster
from grader.cluster.node_orders import ExamineOrder, NodeReady, RunOrder
from grader.cluster.servers import QuietScheduler, QuietWorker, configure
from grader.cluster.where import LocalNode
from grader.domain.evidence import Attestation, Evidence
from grader.domain.formatting import counted
from grader.gradebook import Gradebook
from grader.grading.concurrent_work import Watcher
from grader.grading.examiner import ClassWork, SubmissionWork
from grader.grading.grade_class import GradeRequest, TakenIn, grade_class
from grader.grading.run import EvidenceBuilder, RunBasis
from grader.grading.submission_run import blank_evidence
from grader.grading.time_estimate import Workload
from tests.submissions.build import behaviors, build

ASSIGNMENT = "vit_defects"
RECORDED, NEW = 10_000, 100  # submissions of a replayed class, and those that come when it is resumed
NODES, PLACES, TASKS = 5, 8, 600
ENOUGH_PER_SECOND, MOST_SECONDS, MOST_RATIO = 50.0, 10.0, 1.15
ROUNDS = 1
SIZES, NODE_COUNTS = (1_000, 10_000), (1, 5, 20, 50, 100)


def measured(recorded: int = RECORDED, tasks: int = TASKS, rounds: int = ROUNDS) -> Section:
    """A class's real times, the coordinator's own speed, nodes that wait as long as real ones, and a plan."""
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as name:
        scratch = Path(name)
        known = _known(scratch / "known")
        times = [sum((evidence.seconds or {}).values()) for evidence, _ in known]
        answers = _write_answers(known, scratch / "answers")
        coordinator = _coordinator(scratch / "large", recorded, answers)
        runs = [_on_nodes(scratch / f"run{number}", tasks, times, answers) for number in range(rounds)]
    ratios = [run.seconds / run.ideal for run in runs]
    costs = Costs(
        start=runs[0].start,
        handing=0.05,
        recording=1 / coordinator.per_second,
        end=coordinator.end / recorded,
    )
    compared = planned(times, tasks, NODES, PLACES, costs)
    rows = [
        (
            f"{tasks} submissions, {NODES} nodes",
            f"{compared.seconds / 60:.1f} min",
            f"{compared.ideal / 60:.1f} min",
            spread([run.seconds / 60 for run in runs], "min"),
        )
    ]
    for count, nodes in itertools.product(SIZES, NODE_COUNTS):
        plan = planned(times, count, nodes, PLACES, costs)
        rows.append(
            (
                f"{count:,} submissions, {nodes} nodes",
                f"{plan.seconds / 60:.1f} min, {plan.node_hours:.1f} node hours",
                f"{plan.ideal / 60:.1f} min",
                f"not measured; {plan.waiting:.0%} of it waiting for the coordinator",
            )
        )
    return Section(
        "On a cluster",
        f"The {len(times)} submissions of the demo class took {spread(times, 's')} each, with training, on "
        f"this machine. They are replayed: {recorded:,} results as fast as the coordinator takes them, and "
        f"{tasks} on {NODES} nodes of {PLACES} places that wait as long as each took. The plan is "
        "`benchmarks/cluster_model.py`'s, with what was measured here.",
        ("class", "planned", "ideal", "measured"),
        tuple(rows),
        (
            verdict(
                f"Results recorded per second, {recorded:,} of them",
                coordinator.per_second,
                ENOUGH_PER_SECOND,
                at_most=False,
            ),
            verdict(
                f"Seconds until the first of {NEW} new submissions is handed out when {recorded:,} are done",
                coordinator.resumed,
                MOST_SECONDS,
                at_most=True,
            ),
            f"Total time by the ideal one, {counted(rounds, 'run')}: {spread(ratios, digits=3)}; at most "
            f"{MOST_RATIO} is asked for.",
            f"The coordinator is the limit from about {coordinator.per_second * sum(times) / len(times):.0f} "
            "places on, with submissions as long as these.",
        ),
    )


# --- what is replayed ------------------------------------------------------------------------------------


Known = Sequence[tuple[Evidence, dict[str, bytes]]]
ANSWERS_VARIABLE = "GRADER_BENCHMARK_ANSWERS"  # the folder of what nodes of this machine answer


def _known(folder: Path) -> Known:
    """The evidence of the demo class, and its pictures, graded here."""
    for behavior in behaviors(demo_only=True):
        build(behavior, folder / "class")
    request = GradeRequest(
        folder / "class", ASSIGNMENT, folder / "results", "", data="synthetic", jobs=2, course=ROOT
    )
    grade_class(request, clock=_now, watch=_Timed())
    with Gradebook(folder / "results", assignment_id=ASSIGNMENT) as book:
        return [(book.evidence(student), book.images(student)) for student in book.students()]


def _write_answers(known: Known, folder: Path) -> Path:
    folder.mkdir()
    for number, answer in enumerate(known):
        (folder / f"{number:03}.pickle").write_bytes(pickle.dumps(answer))
    return folder


def _answer(student_id: str, blank: Mapping[str, object], folder: Path) -> tuple[Evidence, dict[str, bytes]]:
    """What was found about some submission, as if it were about this student's."""
    paths = sorted(folder.glob("*.pickle"))
    evidence, images = pickle.loads(paths[int(student_id) % len(paths)].read_bytes())  # noqa: S301 - written above
    return replace(evidence, **blank), images


def _now() -> datetime:
    return datetime.now(UTC)


def _write_class(folder: Path, first: int, count: int) -> None:
    for number in range(first, first + count):
        student = str(500_000_000 + number)
        (folder / student).mkdir(parents=True)
        (folder / student / f"{student}_Lab8_Homework.py").write_text(f"x = {number}\n", encoding="utf-8")


@dataclass
class _Timed:
    """Notes when a run's work began and ended, by the monotonic clock."""

    began: float = 0.0
    ended: float = 0.0

    def secret_is_public(self) -> None:
        """It is an example."""

    def taken_in(self, taken_in: TakenIn) -> None:
        """They are known."""

    def starting(self) -> None:
        """Nothing is shown."""

    @contextlib.contextmanager
    def grading(self, workload: Workload, *, trains: bool) -> Iterator[Watcher]:
        """Between these, submissions are examined and recorded."""
        self.began = time.monotonic()
        yield lambda progress: None
        self.ended = time.monotonic()


# --- coordinator -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Coordinator:
    """The coordinator's own speed.

    Attributes:
        per_second: Results that it records in a second.
        end: Seconds for the files of the class, at the end.
        resumed: Seconds from the start of a resumed run to the first new submission that is handed out.
    """

    per_second: float
    end: float
    resumed: float


class _AtOnce:
    """Answers at once with what was found before, and notes when it was asked first."""

    device, places = "cpu", 64

    def __init__(self, run: RunBasis, folder: Path) -> None:
        self.run = run
        self._folder = folder
        self.asked = 0.0

    def examined(self, work: SubmissionWork, *, graded_at: datetime, watch: Watcher) -> EvidenceBuilder:
        """See `Examiner`."""
        self.asked = self.asked or time.monotonic()
        blank = vars(blank_evidence(self.run, work.submission, attempt=work.attempt, graded_at=graded_at))
        kept = {name: blank[name] for name in KEPT}
        return EvidenceBuilder(*_answer(work.submission.student_id, kept, self._folder))


# what evidence says of the submission itself
KEPT = (
    *("student_id", "submission_digest", "graded_at", "received_at", "delivery", "origin", "team", "partial"),
    *("engine", "assignment_digest", "attempt", "data_digest", "variant"),
)


class _Answering:
    """Machines that answer at once."""

    page_processes = len(os.sched_getaffinity(0))

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.examiner_of_run: _AtOnce | None = None

    def threads(self, jobs: int) -> int:
        """As many as a cluster's."""
        return cluster_grading.MOST_AT_ONCE

    @contextlib.contextmanager
    def examiner(self, work: ClassWork) -> Iterator[_AtOnce]:
        """One that answers at once."""
        self.examiner_of_run = _AtOnce(work.basis, self._folder)
        yield self.examiner_of_run


def _coordinator(folder: Path, count: int, answers: Path) -> _Coordinator:
    request = GradeRequest(folder / "class", ASSIGNMENT, folder / "results", "", course=ROOT)
    _write_class(folder / "class", 0, count)
    timed, machines = _Timed(), _Answering(answers)
    grade_class(request, clock=_now, watch=timed, machines=machines)
    end = time.monotonic() - timed.ended
    per_second = count / (timed.ended - timed.began)
    print(f"  {count} results: {per_second:.1f} per second", flush=True)
    _write_class(folder / "class", count, NEW)
    # like the command that resumes, in a process that has graded nothing yet
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as another:
        seconds = another.submit(_resumed, request, answers).result()
    print(f"  resumed within {seconds:.1f} s", flush=True)
    return _Coordinator(per_second, end, seconds)


def _resumed(request: GradeRequest, answers: Path) -> float:
    """Seconds until the first new submission is handed out."""
    machines, began = _Answering(answers), time.monotonic()
    grade_class(request, clock=_now, watch=_Timed(), machines=machines)
    assert machines.examiner_of_run is not None
    return machines.examiner_of_run.asked - began


# --- nodes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """A class on nodes that wait.

    Attributes:
        start: Seconds from the start of the command until nodes are ready.
        seconds: In which its submissions were examined and recorded.
        ideal: Seconds if nothing but the nodes' own work took time.
    """

    start: float
    seconds: float
    ideal: float


def replayed_prepare(order: RunOrder) -> NodeReady:
    """In place of a node's own: nothing is loaded."""
    return NodeReady(Attestation("strict"), "cpu")


def replayed_examine(order: ExamineOrder) -> tuple[Evidence, dict[str, bytes]]:
    """In place of a node's own: wait as long as it took before, and answer with what was found then."""
    submission = order.work.submission
    blank = {
        **{name: getattr(submission, name) for name in ("student_id", "origin", "team", "partial")},
        "submission_digest": submission.digest,
        "graded_at": order.graded_at,
        "engine": __version__,
        "attempt": None,
        "data_digest": "",
        "variant": dict(order.draws.values),
    }
    evidence, images = _answer(submission.student_id, blank, Path(os.environ[ANSWERS_VARIABLE]))
    time.sleep(sum((evidence.seconds or {}).values()))
    return evidence, images


def _on_nodes(folder: Path, count: int, times: Sequence[float], answers: Path) -> _Run:
    _write_class(folder / "class", 0, count)
    request = GradeRequest(folder / "class", ASSIGNMENT, folder / "results", "", course=ROOT)
    timed, began = _Timed(), time.monotonic()
    with (
        mock.patch.dict(os.environ, {ANSWERS_VARIABLE: str(answers)}),
        mock.patch.multiple(node_work, prepare=replayed_prepare, examine=replayed_examine),
        mock.patch.object(cluster_grading, "reached", _several_nodes),
    ):
        machines = ClusterMachines(LocalNode(), PLACES, lambda sentence: None)
        grade_class(request, clock=_now, watch=timed, machines=machines)
    first = 500_000_000
    work = [times[number % len(times)] for number in range(first, first + count)]
    ideal = max(sum(work) / (NODES * PLACES), max(work))
    seconds = timed.ended - timed.began
    print(f"  {count} on {NODES} nodes: {seconds:.0f} s, ideal {ideal:.0f} s", flush=True)
    return _Run(timed.began - began, seconds, ideal)


@contextlib.contextmanager
def _several_nodes(where: LocalNode, jobs: int) -> Iterator[ReachedCluster]:
    """Nodes on this machine, which are started as those of a run are."""
    configure()
    security = Security.temporary()
    common = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}
    with tempfile.TemporaryDirectory(prefix="grader-dask-", ignore_cleanup_errors=True) as folder:
        options = {
            **common,
            "nthreads": jobs,
            "worker_class": QuietWorker,
            "memory_limit": 0,
            "local_directory": folder,
        }
        with (
            SpecCluster(
                workers={f"node{number}": {"cls": Nanny, "options": options} for number in range(NODES)},
                scheduler={
                    "cls": QuietScheduler,
                    "options": {**common, "port": 0, "dashboard_address": None},
                },
                security=security,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            cluster.get_client() as client,
        ):
            client.wait_for_workers(NODES)
            yield ReachedCluster(client, NODES)
