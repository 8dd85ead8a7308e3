"""What trains the model that counts: what was read from the source, and what a trial of it showed."""

from dataclasses import dataclass

from grader.domain.program import Omission, Place, Script


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
