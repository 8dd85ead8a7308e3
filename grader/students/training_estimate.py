"""How long the trainings of a homework will take on this machine, from a trial and a few of their epochs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.domain.errors import Interruption
from grader.domain.measure import Measure
from grader.students.homework import Homework
from grader.students.own_machine import OwnWorkers, own_program, own_seed, patient
from grader.students.own_training import chosen_device, image_source, student_data

if TYPE_CHECKING:
    from grader.training import EpochReport

TRIED = 2  # epochs: the first one also warms up


@dataclass(frozen=True)
class TrainingEstimate:
    """What training one of the models takes.

    Attributes:
        epochs: Of the whole training, as a trial on made-up images came to; None: that is not known.
        epoch_seconds: Of one of them, with a look at the test images; None: none came to its end.
        why_not: Why it is not known, as a sentence.
    """

    measure: Measure
    epochs: int | None = None
    epoch_seconds: float | None = None
    why_not: str = ""

    @property
    def seconds(self) -> float | None:
        """Of the whole training; None where that is not known."""
        if self.epochs is None or self.epoch_seconds is None:
            return None
        return self.epochs * self.epoch_seconds


class _EnoughSeen(Interruption):
    """A training goes on no longer: how long its epochs take is known."""


def training_estimates(
    found: Homework, data: str | None = None, *, device: str = "auto"
) -> Iterator[TrainingEstimate]:
    """An estimate for each model that the homework trains by itself, one after the other.

    Args:
        data: A zip or folder of images, or `synthetic`; None: the dataset.zip beside the homework.

    Raises:
        UsageError: There are no such images, or no such device.
        SubmissionError: The file cannot be read as a script or a notebook.
    """
    assignment = patient(found.local.assignment)
    source = image_source(found.local, data, beside=found.path.parent)
    splits, where = None, chosen_device(device)
    for measure in assignment.measures:
        if measure.call is not None:
            yield TrainingEstimate(measure, why_not="It is trained by one call, of which no part is timed.")
            continue
        program = own_program(found.path, assignment).read_for(measure.id)
        if program.script.missing:
            yield TrainingEstimate(measure, why_not=f"Nothing is trained: {program.script.missing}.")
            continue
        from grader.training import Job, job_of, measured_training, rehearsed

        splits = splits if splits is not None else student_data(found.local, source)
        seconds: list[float] = []
        with OwnWorkers(assignment, found.path.parent) as workers:
            job = job_of(
                assignment,
                measure,
                splits,
                program=program,
                limits=assignment.limits,
                forbidden=assignment.forbidden_patterns,
                device=where,
                seed=own_seed(found.path, "training"),
            )
            assert isinstance(job, Job)  # no call trains it
            rehearsal = rehearsed(workers, job)
            tried = min(TRIED, rehearsal.epochs or TRIED)

            def report(told: "EpochReport", seconds: list[float] = seconds, tried: int = tried) -> None:
                seconds.append(told.epoch.seconds or 0.0)
                if len(seconds) >= tried:
                    raise _EnoughSeen

            reason = rehearsal.fault
            try:
                reason = measured_training(workers, job, report).training.reason or reason
            except _EnoughSeen:
                reason = reason if rehearsal.epochs is None else ""
        each = min(seconds, default=None)
        why_not = "" if rehearsal.epochs is not None and each is not None else reason
        yield TrainingEstimate(measure, rehearsal.epochs, each, why_not)
