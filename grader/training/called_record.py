"""The record of a training by a call: what is known of it, and how it ended."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from grader.domain.errors import CourseError
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.measure import call_in_words
from grader.domain.program_run import Ending
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Stepped
from grader.protocol.worker_reports import raised_at, unwritten
from grader.training.examples import example_images, predictions
from grader.training.metrics import (
    accuracy_interval,
    confusion,
    cross_entropy,
    mean_reported,
    value_interval,
)
from grader.training.training_job import (
    CalledJob,
    EpochReport,
    FinalModel,
    Measured,
    Report,
    is_crowded,
    memory_in_words,
    ran_out,
    stages,
)


class CalledRecord:
    """What is known of one training.

    Attributes:
        outcome: How it ended; None while it goes on.
        loaded: The worker that trains has executed the file.
    """

    def __init__(self, job: CalledJob, report: Report) -> None:
        """Nothing is known yet.

        Args:
            report: Called with each pass over the training loader.
        """
        self.outcome: TrainingOutcome | None = None
        self.loaded = False
        self._job = job
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._reason = self._where = ""
        self._lacked_gpu_memory = False
        self._outputs: Any = None
        self._seen: float | None = None
        self._final: FinalModel | None = None
        self._report = report
        self._planned = job.call.epochs
        self._pass_started = self._started
        self._passes = 0
        self._steps: float | None = None  # for each batch of the epochs that were asked for
        self._epochs: list[Epoch] = []
        self._epoch_replies: list[EpochDone] = []

    def note_pass(self) -> None:
        """A pass over the training loader has ended, whether or not the model can be measured after it."""
        self._passes += 1

    def note_steps(self, stepped: Stepped) -> None:
        """The function that trains took so many steps, in passes that were seen or not."""
        if self._planned and stepped.batches > 0:
            self._steps = stepped.steps / (self._planned * stepped.batches)

    def take_pass(self, done: EpochDone, outputs: Any) -> None:
        """Take a pass over the training loader, and what the model then answers for the hidden inputs."""
        splits, targets = self._job.splits, self._job.examples.test_targets
        if splits is None or outputs.shape != (len(targets), len(splits.classes)):
            return
        scores = outputs.astype(np.float32)
        if not np.isfinite(scores).all():
            return
        now = time.monotonic()
        epoch = Epoch(
            number=len(self._epochs) + 1,
            train_loss=mean_reported(done.arrays.get("reported")),
            test_loss=cross_entropy(scores, targets),
            test_accuracy=float((scores.argmax(axis=1) == targets).mean()),
            learning_rate=done.learning_rate,
            seconds=now - self._pass_started,
        )
        self._pass_started = now
        self._epochs.append(epoch)
        self._epoch_replies.append(replace(done, arrays={}, modules=()))
        self._report(EpochReport(epoch, max(self._planned or 0, epoch.number)))

    def trained(self) -> None:
        """The function that trains has returned."""
        self._seconds = time.monotonic() - self._started

    def take(self, outputs: Any, seen_accuracy: float | None, final: FinalModel | None) -> None:
        """Take what the trained model answers for the hidden inputs, (n, ...).

        Args:
            seen_accuracy: Its accuracy for some of the images that it was trained on, 0 to 1.
            final: The model, if a judge can look at it again.
        """
        if outputs.dtype.kind == "f" and not np.isfinite(outputs).all():
            self.end(TrainingOutcome.DIVERGED, "The trained model's outputs are not finite numbers.")
            return
        self._outputs, self._seen, self._final = outputs, seen_accuracy, final
        self.outcome = TrainingOutcome.COMPLETED

    def fail(self, raised: StudentRaised, ending: Ending) -> None:
        """The student's code raised. Only type and line are reported, as it may have seen what is hidden.

        Args:
            ending: How its worker ended after that, with what the kernel says about its memory.
        """
        job, problem = self._job, raised.problem
        where = raised_at(problem, job.program)
        if problem.type == "NotImplementedError":
            part = unwritten(problem, job.program.defined or {})
            part_in_words = f"`{part}`" if part else "a part of it"
            self.end(
                TrainingOutcome.FAILED,
                f"There is nothing to train yet: {part_in_words} is not implemented.",
                where,
            )
        elif problem.resource == "memory" and ran_out(problem, ending, job):
            self._lacked_gpu_memory = is_crowded(job)
            self._over_budget(memory_in_words(job))
        else:
            when = "Training ended" if self._seconds is None else "The trained model could not answer"
            self.end(TrainingOutcome.FAILED, f"{when}: it raised {job.raised(problem)}.", where)

    def give_up(self, fault: WorkerFault) -> None:
        """The worker hung, died or talked nonsense."""
        if fault.kind == "death" and fault.limit is not None:
            self._over_budget(f"{fault}")
        elif fault.kind != "time":
            self.end(TrainingOutcome.FAILED, f"Training broke off: {fault}.")
        elif not self.loaded:
            outcome = TrainingOutcome.UNKNOWN if fault.hindered else TrainingOutcome.FAILED
            self.end(outcome, f"The file could not be loaded for training: {fault}.")
        elif self._seconds is None:
            self._over_budget(f"our time limit of {self._job.limits.training_seconds:.0f} s ended it")
        else:
            self.end(TrainingOutcome.FAILED, f"The trained model could not be evaluated: {fault}.")

    def _over_budget(self, what: str) -> None:
        """One of our limits stopped it: the result is unknown, never zero."""
        self.end(
            TrainingOutcome.BUDGET,
            f"{what}. What it is worth is unknown, not zero: a person decides, or raises the limit.",
        )

    def end(self, outcome: TrainingOutcome, reason: str, where: str = "") -> None:
        """Training is over, with this outcome."""
        self.outcome, self._reason, self._where = outcome, reason[:1].upper() + reason[1:], where

    def measured(self) -> Measured:
        """The training as evidence."""
        job = self._job
        values, images = ({}, {}) if self._outputs is None else self._values()
        training = Training(
            outcome=self.outcome or TrainingOutcome.FAILED,
            reason=self._reason,
            where=self._where,
            data=job.examples.name,
            device=job.device,
            classes=job.classes,
            epochs=tuple(self._epochs),
            planned_epochs=self._planned if self._epochs else None,
            stages=stages(self._epoch_replies, job.program),
            counted=f"after {call_in_words(job.call)}",
            seconds=self._seconds if self._seconds is not None else time.monotonic() - self._started,
            steps_per_batch=self._steps,
            objections=self._objections(),
            **values,
        )
        return Measured(training, images, lacked_gpu_memory=self._lacked_gpu_memory, trained=self._final)

    def _objections(self) -> tuple[str, ...]:
        if self._planned is None or self._passes <= self._planned:
            return ()
        return (
            f"`{self._job.call.function}` trained in {self._passes} passes over images; it was asked "
            f"for {self._planned} epochs.",
        )

    def _values(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """What was measured of the outputs, as fields of a training, and pictures of some of them."""
        job, outputs, targets = self._job, self._outputs, self._job.examples.test_targets
        values: dict[str, Any] = {}
        images: dict[str, bytes] = {}
        if job.splits is not None and outputs.shape == (len(targets), len(job.classes)):
            predicted = outputs.argmax(axis=1)
            accuracy = float((predicted == targets).mean())
            counts = confusion(predicted, targets, len(job.classes))
            scores = outputs.astype(np.float32)
            shown, images = predictions(scores, job.splits, example_images(job.splits))
            values = {
                "accuracy": accuracy,
                "interval": accuracy_interval((accuracy,), len(targets)),
                "confusion": tuple(tuple(int(cell) for cell in row) for row in counts),
                "predictions": shown,
                "seen_accuracy": self._seen,
            }
        if job.score is not None:
            try:
                value = job.score(outputs, targets)
                values |= {"value": value, "interval": value_interval(job.score, outputs, targets)}
            except CourseError as error:
                self._unknown(error)
        elif not values:
            shape = tuple(outputs.shape)
            self.end(
                TrainingOutcome.FAILED,
                f"The trained model gives outputs of shape {shape}; one number for each of the "
                f"{len(job.classes)} classes is needed.",
            )
        return values, images

    def _unknown(self, error: CourseError) -> None:
        """The measure could not be computed; whether the model or the measure is at fault is not known."""
        shape, kind = tuple(self._outputs.shape), self._outputs.dtype.name
        reason = f"What the trained model gives ({kind} of shape {shape}) could not be measured: {error}"
        self.end(TrainingOutcome.UNKNOWN, reason)
