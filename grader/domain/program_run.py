"""Facts about the run of a submission's program: its plan, what the watch saw, and how it ended.

It holds the training of the model that counts, as read from the source and as a trial showed it; the
forbidden parts that running code used, and where it pried; how a process ended, according to the kernel and
never to the process itself; and the fakes of other components while one is tested alone. It never runs
anything and does not decide what follows for a grade.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from grader.domain.analyzed_program import Omission, Place, Script


@dataclass(frozen=True)
class Stage:
    """Epochs that follow each other in one loop, with the same optimizer, schedule and trained parameters.

    Attributes:
        loop: Where the loop begins; None if no loop of the source holds it.
        called: The top-level line that calls the function with the loop; None at top level.
        optimizer: Its class, `AdamW`.
        schedule: The class of the schedule, `OneCycleLR`; empty: there is none.
        learned: How many numbers the optimizer changes.
        epochs: The number of epochs.
        first_rate: The learning rate at the end of the first of these epochs.
        last_rate: At the end of the last one.
        per_batch: Whether the rate changes within epochs, so that `first_rate` depends on the number of
            batches.
    """

    loop: Place | None
    called: Place | None
    optimizer: str
    schedule: str
    learned: int
    epochs: int
    first_rate: float
    last_rate: float
    per_batch: bool = False


@dataclass(frozen=True)
class Rehearsal:
    """A trial of the training on a few synthetic images, which shows what it would do.

    Attributes:
        stages: In their order.
        other_models: How many further models it trains because the one that counts depends on them.
        complete: Whether it finished.
        fault: What kept it from finishing, as a sentence, unless it merely takes long.
        where: The place in the student's file, if their code raised.
        parameters: The number of the model's parameters; None if unknown.
        multiply_adds: Of the model for one image; None if they could not be counted.
        batch_size: Of the training loader; None: it is not known, and the handed-out one was used.
        has_transform: The student's own transform was found.
    """

    stages: tuple[Stage, ...] = ()
    other_models: int = 0
    complete: bool = True
    fault: str = ""
    where: str = ""
    parameters: int | None = None
    multiply_adds: int | None = None
    batch_size: int | None = None
    has_transform: bool = False

    @property
    def epochs(self) -> int | None:
        """The epochs of all stages together; None if it did not finish."""
        return sum(stage.epochs for stage in self.stages) if self.complete else None


@dataclass(frozen=True)
class Plan:
    """The part of a program that is trained, as far as points depend on it.

    Attributes:
        model: The variable of the model that counts, if there is one.
        why: Why it counts, as a clause.
        missing: Why nothing is trained, as a clause; empty: something is.
        loops: The loops over epochs.
        seeds: Where random numbers are seeded.
        validates: Whether a tenth of the training images is held out, because the code decides by what it
            measures.
        left_alone: Statements that train other models.
        rehearsal: The result of a trial; None: there was none.
        widens: Whether the images held out because of `validates` are trained on in the end, after all
            decisions.
    """

    model: str = ""
    why: str = ""
    missing: str = ""
    loops: tuple[Place, ...] = ()
    seeds: tuple[Place, ...] = ()
    validates: bool = False
    left_alone: tuple[Omission, ...] = ()
    rehearsal: Rehearsal | None = None
    widens: bool = False

    @property
    def can_be_trained(self) -> bool:
        """Whether there is something to train, and no trial found an obstacle."""
        return not self.missing and (self.rehearsal is None or not self.rehearsal.fault)


def plan_of(script: Script, rehearsal: Rehearsal | None = None) -> Plan:
    """The plan of a script."""
    return Plan(
        model=script.model,
        why=script.why,
        missing=script.missing,
        loops=tuple(loop.place for loop in script.loops),
        seeds=script.seeds,
        validates=script.validates,
        widens=script.validates and script.deciding < len(script.statements),
        left_alone=script.left_alone,
        rehearsal=rehearsal,
    )


# --- watch -----------------------------------------------------------------------------------------------


class Prying(StrEnum):
    """Actions that no homework needs, and that could hide the use of a forbidden part from the watch."""

    DYNAMIC_CODE = "dynamic_code"  # text or code objects are executed
    CODE_OBJECTS = "code_objects"  # the code of a function is read, made or replaced
    FRAMES = "frames"  # the frames of running functions are looked at, or traced
    OBJECTS = "objects"  # the collector is asked for objects
    UNPICKLING = "unpickling"  # pickled data names what is to be called
    LIBRARY_SOURCE = "library_source"  # a library's file is opened
    SECOND_COPY = "second_copy"  # a module with forbidden parts is executed again
    MEMORY = "memory"  # memory is accessed by bypassing Python


@dataclass(frozen=True)
class Pried:
    """One place at which running code pried.

    Attributes:
        place: The student's line; None if unknown.
        stage: When it happened: a component's name, LOADING or TRAINING.
    """

    kind: Prying
    place: Place | None
    stage: str


@dataclass(frozen=True)
class ReachedPart:
    """A forbidden part that running code used.

    Attributes:
        name: Its dotted name.
        patterns: The patterns of `assignment.toml` that it falls under.
        inside: The forbidden part whose own code used it; empty if, as far as is known, the student's code
            did.
        within: The patterns that `inside` falls under.
        stage: As in `Pried`.
        place: The student's line; None if unknown.
    """

    name: str
    patterns: tuple[str, ...]
    inside: str
    within: tuple[str, ...]
    stage: str
    place: Place | None = None


@dataclass(frozen=True)
class Watched:
    """What the watch in the workers of one submission saw.

    Attributes:
        reached: Each part once for each part whose code used it.
        pried: Each kind once for each place.
        unproven: The stages after which the watch failed its test, so that what was used is not known.
    """

    reached: tuple[ReachedPart, ...] = ()
    pried: tuple[Pried, ...] = ()
    unproven: tuple[str, ...] = ()

    def __or__(self, other: "Watched") -> "Watched":
        """The union of what both saw."""
        return Watched(
            tuple(dict.fromkeys((*self.reached, *other.reached))),
            tuple(dict.fromkeys((*self.pried, *other.pried))),
            tuple(dict.fromkeys((*self.unproven, *other.unproven))),
        )


NOTHING_SEEN = Watched()


# --- ending ----------------------------------------------------------------------------------------------


EndingLimit = Literal["memory", "cpu", "file_size"]


@dataclass(frozen=True)
class Ending:
    """The end of a process that ran somebody's code.

    Attributes:
        words: The end as a clause: `it was ended by signal 11`.
        limit: Which of our limits ended it, if one did.
        memory_mb: The most memory that it held, beyond what it shares with its host, in 10**6 bytes; None if
            it was not measured.
        near_memory: Whether its memory limit refuses allocations instead of ending the process, and it held
            so much that a refusal was probably due to that limit.
        cpu_seconds: The processor time that it used in all; None if it was not measured.
    """

    words: str
    limit: EndingLimit | None = None
    memory_mb: int | None = None
    near_memory: bool = False
    cpu_seconds: float | None = None


# --- affine fakes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AffineFake:
    """A replacement with known behavior for one of the student's components.

    Its constructor takes anything. The i-th instance (0-based, in order of construction) computes
    `scale[i] * x.roll(roll, dims=1) + shift[i]`, over x's second axis for `roll != 0`. With `wraps`,
    it applies that to its input and hands it to the module that it was given.

    Attributes:
        scale, shift: One per instance; the last is repeated.
        parameters: How many trainable numbers each instance holds, without using them.
        heads: If it is called with an argument that is True, it returns a pair: its answer, and attention
            weights of this many heads, (batch, heads, n, n), each 1 / n; 0: it does not.
    """

    scale: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    roll: int = 0
    wraps: bool = False
    parameters: int = 0
    heads: int = 0
