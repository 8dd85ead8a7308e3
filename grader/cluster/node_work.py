"""What a node does: it proves its isolation, loads its hosts once, and examines one submission after another.

The coordinator calls these functions by Dask, in a process of the node that grades several runs at most one
after the other. It knows no gradebook and no secret. What it writes lies in a folder that only its user may
read, and goes when the run ends: at the coordinator's word, when that has been silent for too long, or with
the process.
"""

import atexit
import contextlib
import os
import platform
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from distributed import get_worker

from grader import __version__
from grader.cluster.node_orders import (
    ExamineOrder,
    NodeBusy,
    NodeReady,
    NodeSurvey,
    NodeUnready,
    RunOrder,
    unpack_folder,
    unpacked_submission,
)
from grader.cluster.own_folders import NODE, own_folder
from grader.course.assignment_file import digest
from grader.course.locate import Course
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.domain.run_facts import RunFacts
from grader.domain.submission import Submission
from grader.grading.concurrent_work import GradingStage, Progress
from grader.grading.devices import device_slots, training_device
from grader.grading.examiner import OnThisMachine
from grader.grading.run import AttemptData, Run, require_level, running_hosts
from grader.grading.submission_draws import SubmissionDraws
from grader.kit.splits import Examples, Splits
from grader.parser.messages import SOURCE_LIMITS

ENDS_VARIABLE = "GRADER_NODE_ENDS"  # seconds since the epoch: when a batch system will end this node
LEASE_SECONDS = 150.0  # without a word of the coordinator: then it is gone
LOOK_SECONDS = 5.0  # between two looks at that
PACE_SECONDS = 0.5  # between two reports on one submission
_LEAST_ROOM = 1_000_000  # bytes that a node needs on its disk for any submission
PACKAGES = ("torch", "numpy")


def survey() -> NodeSurvey:
    """What this node is.

    Raises:
        UsageError: When it ends is told in a way that cannot be read.
    """
    ends = os.environ.get(ENDS_VARIABLE, "")
    try:
        left = float(ends) - time.time() if ends else None
    except ValueError:
        raise UsageError(f"{ENDS_VARIABLE} is '{ends}' there, and should be seconds since 1970.") from None
    return NodeSurvey(socket.gethostname(), versions_here(), left)


def versions_here() -> dict[str, str]:
    """What results depend on, and must be the same on all machines: package -> version, and Python's."""
    # releases of one version of Python read the same programs and compute the same
    here = {"grader": __version__, "python": ".".join(platform.python_version_tuple()[:2])}
    return here | {package: version(package) for package in PACKAGES}


# --- a run on this node ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _NodeData:
    """The data of one attempt, as the coordinator prepared them."""

    data: Splits | Examples
    its_digest: str

    def of(self, attempt: int) -> Splits | Examples:
        return self.data

    def digest(self, attempt: int) -> str:
        return self.its_digest

    def are_those_of(self, earlier: RunFacts) -> bool:
        return earlier.data_digest == self.its_digest


@dataclass
class _NodeRun:
    """A run on this node, while it lasts.

    Attributes:
        results: What stands for the folder of its results.
        run: Without what is drawn for a submission, and without data.
        data: By their digest.
        heard: When the coordinator was last heard of, by the monotonic clock.
    """

    run_id: str
    results: str
    folder: Path
    run: Run
    resources: contextlib.ExitStack
    data: dict[str, Splits | Examples] = field(default_factory=dict)
    heard: float = field(default_factory=time.monotonic)


_lock = threading.Lock()
_current: _NodeRun | None = None


def prepare(order: RunOrder) -> NodeReady:
    """Get ready for a run: unpack the assignment, load the hosts and prove the isolation.

    Raises:
        NodeBusy: Another run lasts here.
        EngineError: What arrived is not what was sent.
        UsageError: This machine lacks something.
        SandboxError: This machine isolates too little.
    """
    global _current
    with _lock:
        if _current is not None and _current.run_id == order.run_id:
            return NodeReady(_current.run.hosts.isolation, _current.run.device)
        if _current is not None and _current.results != order.results:
            raise NodeBusy("Another run lasts here.")
        _end()
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(own_folder(NODE))
            course = Course(folder / "course", "", "", minimum_level=order.minimum_level)
            reference = course.root / "reference" / order.assignment.id
            unpack_folder(order.files, reference)
            if digest(reference) != order.assignment.digest:
                raise EngineError("The assignment did not arrive as it was sent.")
            assignment = replace(order.assignment, folder=reference)
            hosts = stack.enter_context(
                running_hosts(course, assignment, hidden=(folder,), unofficial=order.unofficial)
            )
            require_level(course, hosts.isolation)
            device = training_device(order.device, unofficial=order.unofficial)
            slots = device_slots(device, assignment.limits.gpu_memory_mb)
            run = Run(_unknown_draws, assignment, None, hosts, device, slots)
            _current = _NodeRun(order.run_id, order.results, folder, run, stack.pop_all())
        threading.Thread(target=_watch_lease, args=(_current,), daemon=True).start()
        return NodeReady(hosts.isolation, device)


def _unknown_draws(submission: Submission) -> SubmissionDraws:
    raise EngineError("What is drawn for a submission comes with it.")


def renew(run_id: str) -> bool:
    """Take note that the coordinator lives; whether the node is ready for its run."""
    current = _current
    if current is None or current.run_id != run_id:
        return False
    current.heard = time.monotonic()
    return True


def take_data(run_id: str, data_digest: str, data: Splits | Examples) -> None:
    """Keep data that submissions are trained on.

    Raises:
        NodeUnready: This node is not ready for the run.
    """
    _required(run_id).data[data_digest] = data


def release(run_id: str) -> None:
    """End a run: its processes, and all that it wrote."""
    with _lock:
        if _current is not None and _current.run_id == run_id:
            _end()


def give_way(results: str, run_id: str) -> None:
    """End any other run for these results: this one has begun, so that its coordinator is gone."""
    with _lock:
        if _current is not None and _current.results == results and _current.run_id != run_id:
            _end()


def _required(run_id: str) -> _NodeRun:
    current = _current
    if current is None or current.run_id != run_id:
        raise NodeUnready("This node is not ready for the run.")
    return current


def _end() -> None:
    global _current
    ended, _current = _current, None
    if ended is not None:
        ended.resources.close()


def _watch_lease(watched: _NodeRun) -> None:
    while _current is watched:
        time.sleep(LOOK_SECONDS)
        if time.monotonic() - watched.heard > LEASE_SECONDS:
            release(watched.run_id)


@atexit.register
def _end_with_the_process() -> None:
    with _lock:
        _end()


# --- submissions -----------------------------------------------------------------------------------------


def topic(run_id: str) -> str:
    """The topic of Dask's events under which nodes report progress."""
    return f"grader {run_id}"


def examine(order: ExamineOrder) -> tuple[Evidence, dict[str, bytes]]:
    """The evidence of a submission, and its pictures.

    Raises:
        NodeUnready: This node is not ready for the run, or its run was ended meanwhile, or it has to get
            ready again.
    """
    node = _required(order.run_id)
    splits: AttemptData | None = None
    if order.data_digest:
        if order.data_digest not in node.data:
            raise NodeUnready("This node lacks the data that the submission is trained on.")
        splits = _NodeData(node.data[order.data_digest], order.data_digest)
    run = replace(node.run, draw=lambda submission: order.draws, splits=splits)
    watch = _Reports(order.run_id).watch
    try:
        with tempfile.TemporaryDirectory(dir=node.folder) as folder:
            work = replace(order.work, submission=unpacked_submission(order, Path(folder)))
            builder = OnThisMachine(run).examined(work, graded_at=order.graded_at, watch=watch)
        if builder.evidence.status == "engine_error":
            _require_sound(node)
    except OSError:
        _require_sound(node)
        raise
    finally:
        # when a run is ended, so are its hosts, which would look like the submission's fault
        if _current is not node:
            raise NodeUnready("The run was ended meanwhile.")
    return builder.evidence, builder.images


def _require_sound(node: _NodeRun) -> None:
    """End a run for which this node cannot do its work any more, so that it gets ready again, or is left out.

    Otherwise it would have a place at once after each submission, and take the whole class.

    Raises:
        NodeUnready: One of its hosts is gone, or its disk is full.
    """
    hosts = node.run.hosts
    try:
        for host in (hosts.parsers, hosts.judges, hosts.workers):
            host.spawn(SOURCE_LIMITS).close()
        with tempfile.TemporaryFile(dir=node.folder) as trial:
            trial.write(bytes(_LEAST_ROOM))
    except (EngineError, OSError) as error:
        release(node.run_id)
        raise NodeUnready("This node has to get ready again.") from error


class _Reports:
    """Reports of progress to the coordinator, at a pace that it can take."""

    def __init__(self, run_id: str) -> None:
        self._topic = topic(run_id)
        self._last = 0.0
        self._stage: GradingStage | None = None
        self._worker = get_worker()

    def watch(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage is GradingStage.DONE:
            return  # the coordinator says so when it has the evidence
        if progress.stage is self._stage and now - self._last < PACE_SECONDS:
            return
        self._last, self._stage = now, progress.stage
        self._worker.log_event(
            self._topic,
            {
                "student_id": progress.student_id,
                "stage": str(progress.stage),
                "share": progress.share,
                "text": progress.text,
            },
        )
