"""A training job: what is trained, on what and within what limits, and what comes of it.

It holds the jobs, the reports of epochs, and the final measurements. It decides which stages the epochs of a
training form: a worker is believed only as far as the source agrees. It decides whether it was one of our
limits that refused memory. It trains nothing.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from grader.domain.analyzed_program import Note, Place, Program, line_at, place_of
from grader.domain.evidence import Attestation, Epoch, Training
from grader.domain.limits import Limits
from grader.domain.measure import TrainingCall
from grader.domain.program_run import NOTHING_SEEN, Ending, Stage, Watched
from grader.kit.splits import Examples, Splits
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, WorkerProcess
from grader.protocol.replies import EpochDone, Problem
from grader.protocol.requests import Load
from grader.protocol.trees import MAX_NUMBER, ModelMade, OtherValues
from grader.protocol.worker_reports import WatchRecord, raised_in_training

REPLY_LIMIT = FrameLimit(document=1_000_000, arrays=64_000_000)


class ScoreFunction(Protocol):
    """A measure: a number computed from a model's outputs, (n, ...), and the targets, (n, ...)."""

    def __call__(self, outputs: Any, targets: Any) -> float:
        """The number.

        Raises:
            CourseError: The assignment's function failed.
        """


@dataclass(frozen=True)
class Execution:
    """What is executed, and within which limits.

    Attributes:
        forbidden: Patterns that are watched at run time.
        seed: Of initialization, shuffling and dropout; the worker knows it.
        gpu_memory_mb: What it may take of a GPU's memory; None: all of it.
        assignment: The assignment's id.
        order_seed: For what the worker must not know: see `Blinding`. None: nothing is hidden, for one's own
            work.
        is_own: Whether the reader wrote what is executed, so that all that it raises may be told.
    """

    program: Program
    limits: Limits
    forbidden: tuple[str, ...] = ()
    device: str = "cpu"
    seed: int = 0
    order_seed: int | None = None
    gpu_memory_mb: int | None = None
    assignment: str = ""
    is_own: bool = False

    def linked(self, process: WorkerProcess) -> Link:
        """A link to a worker of this job, which records the worker's reports on forbidden parts."""
        return Link(process, WatchRecord(self.forbidden, tuple(self.program.source or {})))

    def load(self, class_names: tuple[str, ...]) -> Load:
        """The request to execute the program, which is the same for all workers of the job.

        Args:
            class_names: As these workers see them.
        """
        return Load(self.program, self.forbidden, class_names, self.seed, self.device)

    def raised(self, problem: Problem) -> str:
        """What the student's code raised, for a sentence; in full if the work is one's own."""
        own = self.is_own or self.order_seed is None
        return raised_in_training(problem, self.program, own=own, assignment=self.assignment)


@dataclass(frozen=True)
class Job(Execution):
    """A training as the program itself trains.

    Attributes:
        splits: Images and labels; the test labels stay on this side.
        score: What is measured in addition to the accuracy, and counts instead of it; None: nothing.
        planned: How many epochs a complete rehearsal had; None: it is not known.
        other: Values in place of the program's own; None: it trains as it is.
        perturbs: Whether blinded images are moved, bent, lit and grained; else they differ from the published
            ones by one gray value at most.
    """

    splits: Splits = field(kw_only=True)
    score: ScoreFunction | None = None
    planned: int | None = None
    other: OtherValues | None = None
    perturbs: bool = True

    @property
    def data(self) -> str:
        """The data set's name."""
        return self.splits.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.splits.classes


@dataclass(frozen=True)
class CalledJob(Execution):
    """A training by calling a function that students wrote.

    Attributes:
        examples: What it is trained and measured on; the test targets stay on this side.
        call: What is called, with what.
        score: What is measured; None: the accuracy.
        scaled: The inputs are bytes, 0 to 255, which submissions see scaled to 0 to 1.
        splits: The images that the examples are made from, if they are images.
        trainer: The graded function that trains for an epoch, if there is one.
    """

    examples: Examples = field(kw_only=True)
    call: TrainingCall = field(kw_only=True)
    trainer: str = ""
    score: ScoreFunction | None = None
    scaled: bool = False
    splits: Splits | None = None

    @property
    def data(self) -> str:
        """The data set's name."""
        return self.examples.name

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes; () if there are none."""
        return self.splits.classes if self.splits is not None else ()


@dataclass(frozen=True)
class EpochReport:
    """An epoch was trained.

    Attributes:
        planned: The number of planned epochs.
        run: Which training it belongs to, 1-based, if it is repeated with other seeds.
        runs: How many there are.
    """

    epoch: Epoch
    planned: int
    run: int = 1
    runs: int = 1


Report = Callable[[EpochReport], None]
AnyJob = Job | CalledJob


class Workers(Protocol):
    """Where training workers come from."""

    def __call__(self) -> WorkerProcess:
        """A new worker with the limits of training."""


@dataclass(frozen=True)
class FinalModel:
    """What a judge needs to look at a trained model again.

    Attributes:
        state: Its parameters and buffers by name, arrays.
        inputs: Some of the hidden images, as the model is fed them, float32 (images, channels, height,
            width).
        scores: What it answered for them, float32 (images, classes).
        made: What it was made with, if the student's source alone does not say.
    """

    state: Mapping[str, Any]
    inputs: Any
    scores: Any
    made: ModelMade | None = None


@dataclass(frozen=True)
class Measured:
    """A training, and what belongs to it.

    Attributes:
        trained: The model at the end of a training that was completed.
        images: PNG by the names in `training.predictions` and `training.attention`.
        notes: What had to be assumed because the source does not say it.
        attestation: What isolated the worker that trained.
        watched: What was seen of forbidden parts at run time.
        lacked_gpu_memory: The GPU's memory, or the part that it may use, was not enough.
    """

    training: Training
    images: dict[str, bytes]
    notes: tuple[Note, ...] = ()
    attestation: Attestation = field(default_factory=lambda: Attestation("unofficial"))
    watched: Watched = NOTHING_SEEN
    lacked_gpu_memory: bool = False
    trained: FinalModel | None = None


# --- stages ----------------------------------------------------------------------------------------------


MOST_STAGES = 50
NAME_LENGTH = 40  # characters of a class's name


def stages(epochs: Iterable[EpochDone], program: Program) -> tuple[Stage, ...]:
    """The stages that epochs form; the worker is believed as far as the source agrees."""
    stages_so_far: list[Stage] = []
    for done in epochs:
        stage = _stage(done, program)
        if stages_so_far and _is_same(stages_so_far[-1], stage):
            stages_so_far[-1] = replace(
                stages_so_far[-1],
                epochs=stages_so_far[-1].epochs + 1,
                last_rate=stage.last_rate,
                per_batch=stages_so_far[-1].per_batch or stage.per_batch,
            )
        elif len(stages_so_far) < MOST_STAGES:
            stages_so_far.append(stage)
    return tuple(stages_so_far)


def _stage(done: EpochDone, program: Program) -> Stage:
    loops = program.script.loops
    rate = done.learning_rate if math.isfinite(done.learning_rate) else 0.0
    return Stage(
        loop=loops[done.loop].place if 0 <= done.loop < len(loops) else None,
        called=_place(done.called, program),
        optimizer=_name(done.optimizer),
        schedule=_name(done.scheduler),
        learned=max(min(done.learned, MAX_NUMBER), 0),
        epochs=1,
        first_rate=rate,
        last_rate=rate,
        per_batch=done.per_batch,
    )


def _is_same(stage: Stage, other: Stage) -> bool:
    return _kind(stage) == _kind(other)


def _kind(stage: Stage) -> tuple[object, ...]:
    return stage.loop, stage.called, stage.optimizer, stage.schedule, stage.learned


def _place(where: str, program: Program) -> Place | None:
    """A place that a worker names, if the source has such a line."""
    place = place_of(where)
    return place if place is not None and line_at(program.source, place) is not None else None


def _name(name: str) -> str:
    return name[:NAME_LENGTH] if name.isidentifier() else ""


# --- memory limit ----------------------------------------------------------------------------------------


NEAR_GPU_MEMORY = 0.5  # of all memory: a refused request is refused whole, and does not count as held


def ran_out(problem: Problem, ending: Ending, job: Execution) -> bool:
    """Whether memory was refused because of one of our limits."""
    if job.device != "cuda":
        return ending.near_memory
    if job.gpu_memory_mb is not None:
        return True  # another try with all of the GPU's memory decides
    return problem.gpu_share >= NEAR_GPU_MEMORY


def is_crowded(job: Execution) -> bool:
    """Whether another try with all of the GPU's memory would be conclusive."""
    return job.device == "cuda" and job.gpu_memory_mb is not None


def memory_in_words(job: Execution) -> str:
    """What was not enough, as a clause."""
    if job.device != "cuda":
        return f"our memory limit of {job.limits.memory_mb} MB was reached"
    share = job.gpu_memory_mb
    whose = "the GPU's memory" if share is None else f"its part of the GPU's memory ({share} MB)"
    return f"{whose} was not enough"
