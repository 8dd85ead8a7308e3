"""What is known of the run of a submission's program: its plan, what was watched, and how it ended.

It holds what trains the model that counts, as read from the source and as a trial showed; the forbidden
parts that running code used, and where it pried; how a process ended, as the kernel says and never as the
process itself does; and the stand-ins for other components while one is tested alone. It never runs
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
        loop: Where the loop begins; None where no loop of the source holds it.
        called: The top-level line that calls the function which holds the loop; None at top level.
        optimizer: Its class, `AdamW`.
        schedule: The class of the schedule, `OneCycleLR`; empty: there is none.
        learned: How many numbers the optimizer changes.
        epochs: How many there are.
        first_rate: The learning rate at the end of the first of these epochs.
        last_rate: At the end of the last one.
        per_batch: It changes within epochs, so that the first depends on how many batches there are.
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
    """A trial of the training on a few made-up images: what it would do.

    Attributes:
        stages: In their order.
        other_models: How many further models it trains because the one that counts depends on them.
        complete: It came to its end.
        fault: What kept it from that, as a sentence, unless it merely takes long.
        where: The place in the student's file, when their code raised.
        parameters: How many numbers the model has as parameters; None where that is not known.
        multiply_adds: Of the model for one image; None where they could not be counted.
    """

    stages: tuple[Stage, ...] = ()
    other_models: int = 0
    complete: bool = True
    fault: str = ""
    where: str = ""
    parameters: int | None = None
    multiply_adds: int | None = None

    @property
    def epochs(self) -> int | None:
        """Of all stages together; None where it did not come to its end."""
        return sum(stage.epochs for stage in self.stages) if self.complete else None


@dataclass(frozen=True)
class Plan:
    """What of a program is trained, as far as points depend on it.

    Attributes:
        model: The variable of the model that counts, where there is one.
        why: Why it counts, as a clause.
        missing: Why nothing is trained, as a clause; empty: something is.
        loops: The loops over epochs.
        seeds: Where random numbers are seeded.
        validates: A tenth of the training images is kept, because the code decides by what it measures.
        left_alone: What trains other models.
        rehearsal: What a trial came to; None: there was none.
        widens: What is kept because of `validates` is trained on in the end, when all is decided.
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
        """Whether there is something to train, and no trial found what keeps it from that."""
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
    """What no homework needs to do, and what could hide from the watch that a forbidden part is used."""

    DYNAMIC_CODE = "dynamic_code"  # text or code objects are executed
    CODE_OBJECTS = "code_objects"  # the code of a function is read, made or replaced
    FRAMES = "frames"  # the frames of running functions are looked at, or traced
    OBJECTS = "objects"  # the collector is asked for objects
    UNPICKLING = "unpickling"  # pickled data names what is to be called
    LIBRARY_SOURCE = "library_source"  # a library's file is opened
    SECOND_COPY = "second_copy"  # a module with forbidden parts is executed again
    MEMORY = "memory"  # memory is reached past Python


@dataclass(frozen=True)
class Pried:
    """One place at which running code pried.

    Attributes:
        place: The student's line; None where it cannot be told.
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
        inside: The forbidden part whose own code used it; empty when the student's code did, as far as can be
            told.
        within: The patterns that `inside` falls under.
        stage: As of `Pried`.
        place: The student's line; None where it cannot be told.
    """

    name: str
    patterns: tuple[str, ...]
    inside: str
    within: tuple[str, ...]
    stage: str
    place: Place | None = None


@dataclass(frozen=True)
class Watched:
    """What the watch in the workers of one submission told.

    Attributes:
        reached: Each part once for each that used it inside.
        pried: Each kind once for each place.
        unproven: The stages after which the watch did not stand a trial: what was used then is not known.
    """

    reached: tuple[ReachedPart, ...] = ()
    pried: tuple[Pried, ...] = ()
    unproven: tuple[str, ...] = ()

    def __or__(self, other: "Watched") -> "Watched":
        """What either told."""
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
        words: It as a clause: `it was ended by signal 11`.
        limit: Which limit of ours ended it, where one did.
        memory_mb: The most memory that it held, beyond what it shares with its host, in 10**6 bytes; None
            where nobody measured it.
        near_memory: Its limit on memory is one that refuses memory, and ends nothing, and it held so much
            that a refusal was likely ours. Where the limit ends a process, what is refused is not our doing.
    """

    words: str
    limit: EndingLimit | None = None
    memory_mb: int | None = None
    near_memory: bool = False


# --- standin behavior ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StandIn:
    """A replacement with known behavior for one of the student's components.

    Its constructor takes anything. The i-th instance (0-based, in order of construction) computes
    `scale[i] * x.roll(roll, dims=1) + shift[i]`, over x's second axis for `roll != 0`. With `wraps`,
    it applies that to its input and hands it to the module that it was given.

    Attributes:
        scale, shift: One per instance; the last is repeated.
        parameters: How many trainable numbers each instance holds, without using them.
        heads: Called with a flag, an argument that is True, it returns a pair: its answer, and attention
            weights of so many heads, (batch, heads, n, n), each 1 / n; 0: it does not.
    """

    scale: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    roll: int = 0
    wraps: bool = False
    parameters: int = 0
    heads: int = 0
