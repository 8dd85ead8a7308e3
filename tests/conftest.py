"""What the tests of several folders share: the assignment, workers, and its checks as they are run."""

import functools
import gc
import importlib.util
import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest

# before torch is imported anywhere: a worker has one thread, and so has what it is compared with
os.environ.setdefault("OMP_NUM_THREADS", "1")

from grader.analysis import program
from grader.course import homework_versions
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment, CheckSpec
from grader.domain.measure import Measure
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, WorkerProcess
from grader.protocol.replies import Answered, Loaded, Measurable
from grader.protocol.requests import STATE, Answer, Load, MeasureModel, Train, glimpse_of
from grader.protocol.trees import ModelMade
from grader.protocol.worker_reports import WatchRecord
from grader.sandbox.child_processes import Child, Processes
from grader.sandbox.forkserver import LocalProcesses
from grader.sandbox.host_client import Host
from grader.sandbox.process_limits import ProcessLimits

ROOT = Path(__file__).parents[1]
pytest_plugins = [
    "tests.counted_processes",
    "tests.real_browser",
    "tests.real_slurm",
    "tests.real_sshd",
    "tests.told_at_once",
    "tests.warm_hosts",
    "tests.warm_python",
]


# what shares hosts, by its path
TOGETHER = {
    "tests/attacks/test_impostors.py": "warm hosts",
    "tests/attacks/": "attacked hosts",
    "tests/checks/test_forms_and_mistakes.py": "warm hosts",
    **{
        f"tests/{name}/": "warm hosts"
        for name in ("grading", "parser", "similarity", "validation", "weekend")
    },
}


# files whose cases take minutes each, and share nothing with those of other parameters
BY_CASE = tuple(f"tests/{name}.py" for name in ("unseen/test_unseen", "checks/test_public_alone"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Among processes, files stay whole, and so do those whose tests share hosts: each is made once."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(BY_CASE):
                file, _, test = nodeid.partition("::")
                return f"{file}::{test.partition('[')[2] or test}"
            found = next((group for start, group in TOGETHER.items() if nodeid.startswith(start)), "")
            return found or super()._split_scope(nodeid)

    return Together(config, log)


def pytest_collection_finish() -> None:
    """Looks for garbage were a sixth of the time: what is loaded stays, and the rest can wait longer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


def pytest_unconfigure() -> None:
    """What stays frozen would be called a leak at the end."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Most `sampled` cases are slow; what shares hosts comes first, as it takes the longest."""
    cases: dict[str, int] = {}
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled:
            name = item.nodeid.partition("[")[0]
            cases[name] = cases.get(name, -1) + 1
            if cases[name] % sampled.args[0]:
                item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not item.nodeid.startswith((*TOGETHER, *BY_CASE)))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests decode and measure stays out of the user's cache; processes of tests share one."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_CACHE", str(shared / "cache"))
        patch.setenv("GRADER_WARM", "0")  # no process outlives the tests but where one is asked for
        yield


@pytest.fixture(scope="session", autouse=True)
def _disk_is_not_waited_for() -> Iterator[None]:
    """No power is cut in a test: what a killed process has written is there, on the disk or not yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr("grader.gradebook.database._SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="session")
def lacking() -> Callable[[str], NoReturn]:
    """Skip for a Debian package that is not here: `lacking("chromium")`.

    Where REQUIRED_PACKAGES names it (`.ci/run` names all that it could install), that is a failure.
    """

    def told(package: str) -> NoReturn:
        if package in os.environ.get("REQUIRED_PACKAGES", "").split():
            pytest.fail(f"The package {package} could have been installed, and its tests are skipped.")
        pytest.skip(f"the package {package} is not installed (Debian: apt-get install {package})")

    return told


@pytest.fixture(scope="session")
def course_root() -> Path:
    """The folder of the course: this repository."""
    return ROOT


@pytest.fixture(scope="session")
def course_of_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a course whose only assignment is `vit_defects`."""
    course = tmp_path_factory.mktemp("course of one")
    for name in ("course.toml", "datasets", "reference/vit_defects", "template/vit_defects"):
        (course / name).parent.mkdir(exist_ok=True)
        (course / name).symlink_to(ROOT / name)
    return course


@pytest.fixture(scope="session")
def assignment() -> Assignment:
    """The assignment `vit_defects`."""
    return read_assignment(ROOT / "reference" / "vit_defects")


@pytest.fixture(scope="session")
def pdfs() -> ModuleType:
    """The module that makes PDFs by hand, honest ones and such as attack."""
    spec = importlib.util.spec_from_file_location("pdfs", ROOT / "tests" / "attacks" / "pdfs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def solved(assignment: Assignment) -> str:
    """The reference solution as a student might have handed it in."""
    return solved_source((assignment.folder / "solution.py").read_text(encoding="utf-8"), "solution.py")


@pytest.fixture(scope="session")
def analyzed(assignment: Assignment) -> Callable[[str], Program]:
    """The program of a homework's text."""

    @functools.lru_cache(500)
    def of(text: str) -> Program:
        return program("homework.py", text.encode(), assignment.program_rules)

    return of


@pytest.fixture(scope="session")
def worker_processes() -> Iterator[Processes]:
    """Where workers come from: forks of one warm host where there is one, else plain processes."""
    if sys.platform != "linux":
        yield LocalProcesses("grader.worker")
        return
    from grader.sandbox.host_client import Host

    with Host.start("unconfined_worker", env={"PYTHONPATH": str(ROOT / "tests")}, timeout=300) as host:
        yield host


@pytest.fixture
def warm_workers(worker_processes: Processes, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Workers on one's own machine are forks of a warm host, so that they are there at once.

    Returns:
        The arguments with which each was asked for so far.
    """
    asked: list[tuple[str, ...]] = []

    class WarmProcesses:
        def __init__(
            self,
            module: str,
            arguments: Sequence[str] = (),
            *,
            env: Mapping[str, str],
            folder: Path | None = None,
        ) -> None:
            assert module == "grader.worker"
            asked.append(tuple(arguments))
            self._cold = LocalProcesses(module, arguments, env=env, folder=folder) if folder else None

        def spawn(self, limits: ProcessLimits) -> Child:
            # the warm ones work in a folder of their host's, and have no cache: nothing is provided
            return (self._cold or worker_processes).spawn(limits)

    monkeypatch.setattr("grader.sandbox.forkserver.LocalProcesses", WarmProcesses)
    return asked


@pytest.fixture(scope="session")
def spawn(worker_processes: Processes) -> Callable[[], WorkerProcess]:
    """A new worker."""
    return lambda: worker_processes.spawn(ProcessLimits())


@pytest.fixture(scope="session")
def with_checks(assignment: Assignment) -> Callable[[Callable[[Any], Any]], Any]:
    """Call a function with the collected checks; what it gives or raises."""
    return _with_checks_of(assignment.folder)


@functools.cache
def _with_checks_of(folder: Path) -> Callable[[Callable[[Any], Any]], Any]:
    assignment = read_assignment(folder)
    from grader.judge.course_code import course_code
    from grader.judge.examination import Checks, run_pytest

    jobs: queue.Queue[Callable[[Checks], Any]] = queue.Queue()
    results: queue.Queue[Any] = queue.Queue()

    def use(checks: Checks) -> None:
        while True:
            job = jobs.get()
            try:
                results.put(job(checks))
            except Exception as error:  # noqa: BLE001 - it is raised in the test
                results.put(error)

    # Collecting takes longer than a run: one pytest holds the collected checks for all tests. It is left
    # waiting at the end, because its closing words would come among those of the pytest around it.
    paths = [*sorted((assignment.folder / "checks").glob("test_*.py"))]
    paths += sorted((assignment.folder / "trained").glob("test_*.py"))
    code = course_code(assignment)
    holder = threading.Thread(target=run_pytest, args=(paths, assignment, code, use), daemon=True)
    holder.start()

    def called(job: Callable[[Checks], Any]) -> Any:
        jobs.put(job)
        result = results.get(timeout=200)
        if isinstance(result, Exception):
            raise result
        return result

    return called


@pytest.fixture(scope="session")
def examined(
    assignment: Assignment,
    analyzed: Callable[[str], Program],
    spawn: Callable[[], WorkerProcess],
    with_checks: Callable[[Callable[[Any], Any]], Any],
) -> Callable[..., Any]:
    """Run checks for the text of a homework: `examined(text, components=..., seed=...)`, an `Examined`."""
    from grader.judge.examination import Checks, Examined
    from grader.judge.student import Student

    def of(
        text: str,
        *,
        components: Sequence[str] | None = None,
        specs: Sequence[CheckSpec] | None = None,
        seed: int = 5,
        limits: dict[str, float] | None = None,
        workers: list[WorkerProcess] | None = None,
    ) -> Examined:
        """The findings; `specs` in place of the assignment's. Each worker that is started is added."""

        def start() -> WorkerProcess:
            process = spawn()
            if workers is not None:
                workers.append(process)
            return process

        chosen = [
            spec
            for spec in (assignment.checks if specs is None else specs)
            if components is None or spec.component in components
        ]
        bounds = replace(assignment.limits, **(limits or {}))

        def job(checks: Checks) -> Examined:
            checks.assignment = replace(assignment, checks=tuple(chosen), limits=bounds)
            student = Student(start, analyzed(text), checks.assignment, seed=seed)
            try:
                return checks.examined(student)
            finally:
                student.close()

        found: Examined = with_checks(job)
        return found

    return of


@pytest.fixture(scope="session")
def examined_trained(assignment: Assignment, examined_trained_of: Callable[..., Any]) -> Callable[..., Any]:
    """What the checks of trained models find in a homework's model, whose weights are moved at random."""
    return functools.partial(examined_trained_of, assignment)


@pytest.fixture(scope="session")
def examined_trained_of(spawn: Callable[[], WorkerProcess]) -> Callable[..., Any]:
    """The same for a homework of any assignment, and for the model of any of its measures."""
    import torch

    from grader.domain.evidence import Finding
    from grader.judge.examination import Checks
    from grader.judge.repeated_calls import MeasuredModel
    from grader.judge.student import Student

    def of(
        assignment: Assignment,
        text: str,
        *,
        scores: Any = None,
        measure: Measure | None = None,
        image: Sequence[int] = (1, 28, 28),
        made: ModelMade | None = None,
    ) -> tuple[Finding, ...]:
        read = program("homework.py", text.encode(), assignment.program_rules)
        chosen = read.read_for(measure.id) if measure is not None else read

        def job(checks: Checks) -> tuple[Finding, ...]:
            checks.assignment = assignment
            student = Student(spawn, chosen, assignment, seed=5)
            try:
                model = student.configured_model(made)
                model.randomize(0.2)
                inputs = torch.randn((4, *image), generator=torch.Generator().manual_seed(1))
                told = model(inputs) if scores is None else scores
                component = measure.roles.model if measure is not None else None
                then = MeasuredModel(model.weights(), inputs, told, made)
                return checks.examined_trained(student, then, component)
            finally:
                student.close()

        found: tuple[Finding, ...] = _with_checks_of(assignment.folder)(job)
        return found

    return of


@pytest.fixture(scope="session")
def composed(solved: str) -> Callable[..., str]:
    """The solution with other parts: a text's definitions in the place of, or after, those of their names."""
    return functools.partial(homework_versions.composed, solved)


@pytest.fixture(scope="session")
def traces_of() -> Callable[..., set[str]]:
    """What sandboxes could leave on the machine: processes, mounts, shared memory, control groups.

    Its arguments are a function that says which processes, by pid, are the asking tests' own, those that
    ended too, since others are at work beside them, and the hosts whose spares, in which nothing ever ran,
    are not traces. Control groups that are there before these tests are what killed graders left on the
    machine.
    """
    earlier = set(_groups())

    def found(is_ours: Callable[[int], bool], hosts: Iterable[Host] = ()) -> set[str]:
        spares = {pid for host in hosts for pid in host.spares()}
        processes = (
            f"process {entry.name}"
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and int(entry.name) not in spares and is_ours(int(entry.name))
        )
        mounts = (
            "mount " + line.split(" ", 3)[3].split(" - ")[0]
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
        )
        shared = (
            f"shared memory {entry}"
            for entry in Path("/dev/shm").iterdir()
            # what servers and nodes of the tests beside this one hold is theirs
            if _owner(entry) != 0 and not entry.name.startswith(("PostgreSQL.", "sem.mp-"))
        )
        groups = (
            f"control group {group}"
            for group in _groups()
            if group not in earlier and is_ours(int(group.name.split("-")[1]))
            if not _holds_only(spares, group)
        )
        return {*processes, *mounts, *shared, *groups}

    return found


@pytest.fixture(scope="session")
def lasting() -> Callable[[Callable[[], set[str]], set[str]], set[str]]:
    """What `traces()` finds that is new since `before` and stays: `lasting(traces, before)`.

    What the tests that run beside this one use is gone soon.
    """

    def left(traces: Callable[[], set[str]], before: set[str]) -> set[str]:
        new = traces() - before
        deadline = time.monotonic() + 60
        while new and time.monotonic() < deadline:
            time.sleep(0.02)
            new &= traces()
        return new

    return left


def _groups() -> Iterator[Path]:
    """All control groups that hosts have made on this machine."""
    # unlike Path.rglob, os.walk leaves out a group that vanishes while we look
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        yield from (Path(folder, name) for name in names if name.startswith("grader-"))


def _holds_only(pids: Collection[int], group: Path) -> bool:
    try:
        held = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return False
    return bool(held) and set(held) <= set(pids)


def _owner(entry: Path) -> int:
    try:
        return entry.stat().st_uid
    except FileNotFoundError:
        return 0  # gone while we looked: it is not a trace


@pytest.fixture(scope="session")
def class_evidence(assignment: Assignment) -> Callable[..., Any]:
    """Evidence about a submission of `vit_defects`: `class_evidence(student_id, failed=(...), ...)`."""
    from datetime import UTC, datetime

    from grader.domain.analyzed_program import Place, TunedValue
    from grader.domain.evidence import Blame, Evidence, Finding, Status, Training, TrainingOutcome

    def made(
        student_id: str, *, failed: Collection[str] = (), accuracy: float | None = 0.7, **fields: Any
    ) -> Evidence:
        findings = tuple(
            Finding(
                spec.id,
                spec.component,
                spec.title,
                Status.FAILED if spec.id in failed else Status.PASSED,
                Blame.STUDENT if spec.id in failed else None,
                message="It is not what it should be." if spec.id in failed else "",
            )
            for spec in assignment.checks
        )
        outcome = TrainingOutcome.BUDGET if accuracy is None else TrainingOutcome.COMPLETED
        return Evidence(
            student_id=student_id,
            assignment_id=assignment.id,
            submission_digest="ab12",
            graded_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
            code_file="homework.py",
            findings=findings,
            training=Training(outcome, accuracy=accuracy),
            tuned=(TunedValue("dim", "128", Place("homework.py", 9)),),
            **fields,
        )

    return made


@pytest.fixture(scope="session")
def class_graded_once(
    tmp_path_factory: pytest.TempPathFactory, assignment: Assignment, class_evidence: Callable[..., Any]
) -> Path:
    """The results folder of which each test gets its own copy: `graded_class`."""
    from datetime import UTC, datetime

    from grader.domain.submission import Role
    from grader.gradebook import Gradebook
    from grader.grading.result_writer import Keeper
    from grader.results.class_pages import write_pages

    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    attention = next(spec.id for spec in assignment.checks if spec.component == "Attention")
    out = tmp_path_factory.mktemp("graded") / "results"
    with Gradebook(out) as book:
        keeper = Keeper(assignment, book, out, "ta1")
        for evidence in (
            class_evidence("400101201"),
            class_evidence("400101202", failed=[attention]),
            class_evidence("400101203", accuracy=None),
            class_evidence("400101204", missing=(Role.REPORT,)),
        ):
            keeper.kept(evidence, {}, now)
        write_pages(assignment, book, out, now)
    return out


@pytest.fixture
def graded_class(class_graded_once: Path, tmp_path: Path) -> Path:
    """A results folder as `grader grade` leaves it: four submissions of `vit_defects`, nothing marked yet.

    400101201 is right, 400101202 fails a check of Attention, 400101203's training has no accuracy, and
    400101204 lacks the report.
    """
    return Path(shutil.copytree(class_graded_once, tmp_path / "results"))


@pytest.fixture(scope="session")
def tiny_files() -> dict[str, str]:
    """The files of a course with a small assignment that validates, by their paths."""
    return TINY


@pytest.fixture
def tiny_course(tmp_path: Path) -> Path:
    """A course with a small assignment that validates: a class, two checks, a mistake and a form."""
    for name, text in TINY.items():
        path = tmp_path / "course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "course"


TINY = {
    "course.toml": 'title = "Tiny"\nsecret = "any"\n',
    "reference/tiny/assignment.toml": """
id = "tiny"
title = "Doubling"
[files]
stem = "{student_id}_homework"
[files.required]
code = [".py"]
[data]
real = "none"
synthetic = "none"
classes = ["a", "b"]
[[component]]
name = "Doubler"
kind = "class"
signature = "dim"
[[rubric]]
id = "model"
title = "Model"
points = 4
[rubric.components]
Doubler = 4
""",
    "reference/tiny/student_readme.md": "# Doubling\n",
    "reference/tiny/checks/test_public.py": '"""None."""\n',
    "datasets/none.py": """
NAME, TITLE = "none", "No images"


def load(source, *, seed, train_share=0.7, cache=None):
    raise ValueError("There are none.")
""",
    "reference/tiny/solution.py": """
import torch
from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        # >>> TODO Doubler.forward: return twice the input
        return 2 * x
        # <<<
""",
    "reference/tiny/checks/test_doubler.py": """
import pytest
from grader.kit import Mismatch, same

pytestmark = pytest.mark.component("Doubler")


def test_doubler_doubles(student, reference):
    \"""Doubler returns twice its input.\"""
    x = student.tensor(2, 3)
    found = student.build("Doubler", 3)(x)
    if same(found, 3 * x):
        raise reference.named("tripled")
    if not same(found, 2 * x):
        raise Mismatch("It is not twice the input.")


def test_doubler_keeps_the_shape(student):
    \"""Doubler returns a tensor of the shape of its input.\"""
    student.build("Doubler", 3)(student.tensor(2, 3), shape=(2, 3))
""",
    "reference/tiny/mistakes/tripled.py": '''"""The input is tripled. Twice is enough.

Multiply by 2.
"""


class Doubler(Doubler):
    def forward(self, x):
        return 3 * x
''',
    "reference/tiny/forms/added.py": '''"""The input is added to itself."""


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return x + x
''',
}


class MeasuringWorker:
    """A worker that answers for images with the weights that another one tells of."""

    def __init__(self, process: WorkerProcess, load: Load, train: Train, test_images: Any) -> None:
        self._link = Link(process, WatchRecord(load.forbidden, tuple(load.program.source or {})))
        self._ask(load, Loaded)
        arrays = {
            "train_labels": train.arrays["train_labels"],
            "glimpse": glimpse_of(train.arrays["train_images"]),
            "test_images": test_images,
        }
        self._measure = MeasureModel(load.class_names, train.device, train.seed, arrays=arrays)
        self._built: Measurable | None = None

    def built(self, made: Any = None) -> Measurable:
        """The model that the source builds, or that is made with these arguments."""
        if self._built is None:
            self._built = self._ask(replace(self._measure, made=made), Measurable)
        return self._built

    def _ask(self, request: Any, reply: type[Any]) -> Any:
        return self._link.ask(request, reply, seconds=20, limit=FrameLimit())

    def measured(self, told: Any) -> Any:
        """What a training worker tells of, with what the model answers in the place of its weights."""
        self.built(getattr(told, "made", None))
        state = {name: value for name, value in told.arrays.items() if name.startswith((STATE, "probe"))}
        state.pop("probe_logits", None)
        answered = self._ask(Answer(arrays=state), Answered)
        assert not answered.misfit, answered.misfit
        kept = {name: value for name, value in told.arrays.items() if not name.startswith(STATE)}
        if "probe" in kept:
            np.testing.assert_allclose(kept["probe_logits"], answered.arrays["probe_logits"], atol=1e-5)
        return replace(told, arrays={**kept, **answered.arrays})


@pytest.fixture
def measuring(spawn: Callable[[], WorkerProcess]) -> Iterator[Callable[..., MeasuringWorker]]:
    """A worker beside one that trains, which measures what that one tells of."""
    started: list[WorkerProcess] = []

    def make(load: Load, train: Train, test_images: Any) -> MeasuringWorker:
        started.append(spawn())
        return MeasuringWorker(started[-1], load, train, test_images)

    yield make
    for process in started:
        process.close()
