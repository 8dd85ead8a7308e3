"""Training a submission in a worker, and scoring it epoch by epoch."""

import io
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from PIL import Image

from grader.domain.assignment import Limits
from grader.domain.errors import EngineError
from grader.domain.evidence import Attestation, Checkpoint, Epoch, Prediction, Training, TrainingOutcome
from grader.domain.program import Program
from grader.kit.splits import Splits
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, StudentRaised, WorkerFault, WorkerProcess
from grader.protocol.messages import (
    CheckpointLoaded,
    EpochDone,
    Load,
    LoadCheckpoint,
    Loaded,
    Problem,
    Train,
    Trained,
    TrainingPlan,
)
from grader.training.accuracy import confusion, cross_entropy, probabilities, wilson_interval

MAX_EPOCHS = 10_000
MOST_TIMES = 10  # as many passes over the images as there are epochs in the student's loop
LAST_EPOCHS = 5  # whose mean accuracy counts; of a short training the last quarter
PER_CLASS = 4
NONSENSE = "The worker answered with something else than the model's outputs."
REPLY_LIMIT = FrameLimit(document=1_000_000, arrays=64_000_000)

EpochReport = Callable[[Epoch, int], None]


class Workers(Protocol):
    """Where training workers come from."""

    def __call__(self) -> WorkerProcess:
        """A new worker with the limits of training."""


@dataclass(frozen=True)
class Job:
    """What is trained, on what, within what.

    Attributes:
        splits: Images and labels; the test labels stay on this side.
        forbidden: Patterns that are watched at run time.
        seed: Of initialization, shuffling and dropout; the worker knows it.
        order_seed: Of the order in which the worker gets the test images and of the numbers of the classes,
            which it must not know: a data set lists images class by class, so that a model could answer by
            position, and students hold the labels of known images. None: as they are, for one's own work.
    """

    program: Program
    splits: Splits
    limits: Limits
    forbidden: tuple[str, ...] = ()
    device: str = "cpu"
    seed: int = 0
    order_seed: int | None = None


@dataclass(frozen=True)
class Measured:
    """A training, and what belongs to it.

    Attributes:
        images: PNG by the names in `training.predictions`.
        notes: Sentences: what had to be assumed because the source does not say it.
        attestation: What isolated the worker that trained.
    """

    training: Training
    images: dict[str, bytes]
    notes: tuple[str, ...] = ()
    attestation: Attestation = field(default_factory=lambda: Attestation("unofficial"))


def measured_training(
    workers: Workers, job: Job, report: EpochReport = lambda epoch, planned: None
) -> Measured:
    """Train the submission and measure it.

    Args:
        report: Told each epoch and the number of planned epochs.
    """
    progress = _Progress(job, report)
    link = Link(workers())
    try:
        numbers = _class_numbers(job)
        classes = tuple(job.splits.classes[old] for old in np.argsort(numbers))
        load = replace(_load(job), class_names=classes)
        link.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
        train = Train(
            class_names=classes,
            device=job.device,
            seed=job.seed,
            arrays={
                "train_images": job.splits.train_images,
                "train_labels": numbers[job.splits.train_labels],
                "test_images": job.splits.test_images[_order(job, "training")],
            },
        )
        replies = (TrainingPlan, EpochDone, Trained)
        seconds = job.limits.training_seconds
        for reply in link.conversation(train, replies, seconds=seconds, limit=REPLY_LIMIT):
            progress.take(reply)
            if progress.outcome is not None:
                break
    except StudentRaised as raised:
        progress.fail(raised)
    except WorkerFault as fault:
        progress.give_up(fault)
    except EngineError as error:
        progress.end(TrainingOutcome.UNKNOWN, str(error))
    finally:
        link.close()
    return replace(progress.measured(), attestation=link.process.attestation)


def measured_checkpoint(workers: Workers, job: Job, data: bytes, name: str) -> Checkpoint:
    """Load a submitted checkpoint into the submitted model, and its accuracy on the hidden images.

    Args:
        data: The file, already bounded in size.
        name: The file's name, for the sentences.
    """
    link = Link(workers())
    try:
        link.ask(_load(job), Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
        request = LoadCheckpoint(
            job.device,
            4_000_000 * job.limits.checkpoint_mb,  # what a file holds may be spread out a little in memory
            arrays={
                "file": np.frombuffer(data, dtype=np.uint8),
                "test_images": job.splits.test_images[_order(job, "checkpoint")],
            },
        )
        seconds = job.limits.load_seconds + 6 * job.limits.call_seconds  # all test images pass the model
        loaded = link.ask(request, CheckpointLoaded, seconds=seconds, limit=REPLY_LIMIT)
    except StudentRaised as raised:
        problem = raised.problem
        return Checkpoint("not_tried", f"{name}: it could not be tried ({problem.type}: {problem.message}).")
    except WorkerFault as fault:
        status = "not_tried" if fault.kind == "time" else "refused"
        return Checkpoint(status, f"{name}: loading it ended badly: {fault}.")
    except EngineError as error:
        return Checkpoint("not_tried", f"{name}: {error}")
    finally:
        link.close()
    if loaded.status == "fits":
        logits = loaded.arrays.get("logits")
        if not _plausible(logits, job.splits):
            return Checkpoint("refused", f"{name}: the model's outputs with it are not usable numbers.")
        logits = _in_order(logits, _order(job, "checkpoint"))
        hits = int((logits.argmax(axis=1) == job.splits.test_labels).sum())  # type: ignore[union-attr]
        return Checkpoint("fits", accuracy=hits / len(job.splits.test_labels))
    if loaded.status == "mismatch":
        return Checkpoint(
            "mismatch",
            f"{name} does not belong to the submitted model: {loaded.reason[:400]}. Save the weights of the "
            "model that is handed in: torch.save(model.state_dict(), path).",
        )
    return Checkpoint("refused", f"{name}: {loaded.reason[:400]}.")


class _Progress:
    """What is known of a training so far."""

    def __init__(self, job: Job, report: EpochReport) -> None:
        self._job = job
        self._report = report
        self._order = _order(job, "training")
        self._numbers = _class_numbers(job)
        self._plan: TrainingPlan | None = None
        self._epochs: list[Epoch] = []
        self._logits: Any = None
        self._restored = False
        self._started = self._epoch_started = time.monotonic()
        self._reason = self._where = ""
        self.outcome: TrainingOutcome | None = None

    def take(self, reply: TrainingPlan | EpochDone | Trained) -> None:
        """Note a reply of the worker's."""
        if isinstance(reply, TrainingPlan) and reply.epochs > MAX_EPOCHS:
            self.end(TrainingOutcome.FAILED, f"{reply.epochs} epochs are more than any training needs")
        elif isinstance(reply, TrainingPlan):
            # what the student's loop did not begin is begun anew, rebuilt
            anew = self._plan is None or (reply.rebuilt and not self._plan.rebuilt and not self._epochs)
            if not anew or reply.epochs < 1:
                self.end(TrainingOutcome.FAILED, NONSENSE)
            self._plan = reply
            self._epoch_started = time.monotonic()
        elif isinstance(reply, EpochDone):
            self._take_epoch(reply)
        else:
            self._take_end(reply)

    def _take_end(self, done: Trained) -> None:
        logits = done.arrays.get("logits")
        if not self._epochs or done.epochs != len(self._epochs) or not _shaped(logits, self._job.splits):
            self.end(TrainingOutcome.FAILED, NONSENSE)
            return
        if not np.isfinite(logits).all():  # type: ignore[arg-type]
            self.end(TrainingOutcome.DIVERGED, "The model's outputs are no finite numbers at the end.")
            return
        self._logits = self._ours(logits)
        self._restored = done.restored
        self.outcome = TrainingOutcome.COMPLETED

    def _take_epoch(self, done: EpochDone) -> None:
        logits = done.arrays.get("logits")
        number = len(self._epochs) + 1
        planned = self._plan.epochs if self._plan else 0
        if done.number != number or number > MOST_TIMES * planned or not _shaped(logits, self._job.splits):
            self.end(TrainingOutcome.FAILED, NONSENSE)
            return
        if not np.isfinite(logits).all():  # type: ignore[arg-type]
            self.end(
                TrainingOutcome.DIVERGED,
                f"Training diverged in epoch {number}: the model's outputs are no longer finite numbers. "
                "A smaller learning rate or a warm-up usually helps.",
            )
            return
        assert logits is not None
        logits = self._ours(logits)
        self._logits = logits
        labels = self._job.splits.test_labels
        reported = done.arrays.get("reported")
        # far below what overflows in a mean; neither infinite nor NaN
        losses = reported[np.abs(reported) < 1e30] if reported is not None and reported.ndim == 1 else None
        now = time.monotonic()
        epoch = Epoch(
            number=number,
            train_loss=float(losses.mean()) if losses is not None and len(losses) else None,
            test_loss=cross_entropy(logits, labels),
            test_accuracy=float((logits.argmax(axis=1) == labels).mean()),
            learning_rate=done.learning_rate,
            seconds=now - self._epoch_started,
        )
        self._epoch_started = now
        self._epochs.append(epoch)
        self._report(epoch, planned)

    def _ours(self, logits: Any) -> Any:
        """Logits (images, classes) in the order of our images and classes."""
        return _in_order(logits, self._order)[:, self._numbers]

    def fail(self, raised: StudentRaised) -> None:
        """The student's code raised."""
        problem = raised.problem
        if raised.in_recipe:
            self.end(TrainingOutcome.UNKNOWN, f"It could not be trained: {problem.message}.")
            return
        if problem.type == "NotImplementedError":
            stub = re.match(r"TODO ([\w.]+):", problem.message)
            part = f"`{stub.group(1)}`" if stub else "a part of it"
            reason = f"There is nothing to train yet: {part} is not implemented."
        elif _out_of_memory(problem):
            self._over_budget(f"our memory limit of {self._job.limits.memory_mb} MB was reached")
            return
        else:
            epoch = f" in epoch {len(self._epochs) + 1}" if self._plan else " before the first epoch"
            reason = f"Training ended{epoch}: {problem.type}: {problem.message}"
        self.end(TrainingOutcome.FAILED, reason, problem.where)

    def give_up(self, fault: WorkerFault) -> None:
        """The worker hung, died or talked nonsense."""
        if fault.kind == "death" and "limit" in str(fault):
            self._over_budget(f"{fault}")
        elif fault.kind != "time":
            self.end(TrainingOutcome.FAILED, f"Training ended badly: {fault}.")
        elif self._plan is None:
            self.end(TrainingOutcome.FAILED, f"The file could not be loaded for training: {fault}.")
        else:
            self._over_budget(f"our time limit of {self._job.limits.training_seconds:.0f} s ended it")

    def _over_budget(self, what: str) -> None:
        """A limit of ours stopped it: unknown, never zero."""
        planned = f" of {self._plan.epochs}" if self._plan else ""
        self.end(
            TrainingOutcome.BUDGET,
            f"After {len(self._epochs)}{planned} epochs {what}. The accuracy is unknown, not zero: a person "
            "decides, or grants more.",
        )

    def end(self, outcome: TrainingOutcome, reason: str, where: str = "") -> None:
        """Training is over, with this outcome."""
        self.outcome, self._reason, self._where = outcome, reason, where

    def measured(self) -> Measured:
        """The training as evidence."""
        splits = self._job.splits
        training = Training(
            outcome=self.outcome or TrainingOutcome.FAILED,
            reason=self._reason,
            where=self._where,
            data=splits.name,
            device=self._plan.device[:100] if self._plan else self._job.device,
            classes=splits.classes,
            epochs=tuple(self._epochs),
            planned_epochs=self._plan.epochs if self._plan else None,
            rebuilt=self._plan is not None and self._plan.rebuilt,
            seconds=time.monotonic() - self._started,
        )
        if self._logits is None or training.outcome is TrainingOutcome.DIVERGED:
            return Measured(training, {}, self._notes())
        predicted = self._logits.argmax(axis=1)
        accuracy, counted = self._counted(float((predicted == splits.test_labels).mean()))
        counts = confusion(predicted, splits.test_labels, len(splits.classes))
        predictions, images = _examples(self._logits, splits, self._job.seed)
        training = replace(
            training,
            accuracy=accuracy,
            counted=counted,
            interval=wilson_interval(accuracy * len(predicted), len(predicted)),
            confusion=tuple(tuple(int(cell) for cell in row) for row in counts),
            predictions=predictions,
        )
        return Measured(training, images, self._notes())

    def _counted(self, final: float) -> tuple[float, str]:
        """The accuracy that counts, and of which weights it is.

        The accuracy of single epochs jumps by several points; their mean over the end of training does not.
        Where the student's code chose weights, it is those that count.
        """
        if self._restored:
            return final, "of the weights that the code restored at the end"
        last = min(LAST_EPOCHS, max(len(self._epochs) // 4, 1))
        if self.outcome is not TrainingOutcome.COMPLETED or last == 1:
            return final, "of the last epoch"
        mean = float(np.mean([epoch.test_accuracy for epoch in self._epochs[-last:]]))
        return mean, f"the mean of the last {last} epochs"

    def _notes(self) -> tuple[str, ...]:
        return tuple(note[:300] for note in self._plan.notes[:10]) if self._plan else ()


def _out_of_memory(problem: Problem) -> bool:
    words = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory")
    return problem.type in ("MemoryError", "OutOfMemoryError") or any(
        word in problem.message.lower() for word in words
    )


def _order(job: Job, purpose: str) -> Any:
    """The order in which the worker gets the test images, int64 (n,)."""
    if job.order_seed is None:
        return np.arange(len(job.splits.test_labels))
    seed = [job.order_seed, zlib.crc32(purpose.encode())]
    return np.random.default_rng(seed).permutation(len(job.splits.test_labels))


def _class_numbers(job: Job) -> Any:
    """The number that each class has in the worker, int64 (classes,)."""
    count = len(job.splits.classes)
    if job.order_seed is None:
        return np.arange(count)
    return np.random.default_rng([job.order_seed, zlib.crc32(b"classes")]).permutation(count)


def _in_order(answers: Any, order: Any) -> Any:
    """Answers for the images in the order of the split, (n, ...)."""
    restored = np.empty_like(answers)
    restored[order] = answers
    return restored


def _load(job: Job) -> Load:
    return Load(job.program, job.forbidden, job.splits.classes, job.seed, job.device)


def _shaped(logits: Any, splits: Splits) -> bool:
    expected = (len(splits.test_labels), len(splits.classes))
    return logits is not None and logits.dtype == np.float32 and logits.shape == expected


def _plausible(logits: Any, splits: Splits) -> bool:
    return _shaped(logits, splits) and bool(np.isfinite(logits).all())


def _examples(logits: Any, splits: Splits, seed: int) -> tuple[tuple[Prediction, ...], dict[str, bytes]]:
    """Four test images per class, drawn at random, with what the model said of them."""
    random = np.random.default_rng(seed)
    certainty = probabilities(logits)
    found: list[Prediction] = []
    images: dict[str, bytes] = {}
    for label in range(len(splits.classes)):
        own = np.flatnonzero(splits.test_labels == label)
        for index in sorted(random.choice(own, size=min(PER_CLASS, len(own)), replace=False)):
            name = f"prediction-{len(found):02}.png"
            predicted = int(logits[index].argmax())
            found.append(Prediction(name, label, predicted, float(certainty[index, predicted])))
            images[name] = _png(splits.test_images[index])
    return tuple(found), images


def _png(pixels: Any) -> bytes:
    """A small picture, at most 100 pixels wide."""
    image = Image.fromarray(pixels)
    image.thumbnail((100, 100))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()
