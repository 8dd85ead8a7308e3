"""The record of a training: what is known of it while it goes on, and how it ended."""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grader.domain.analyzed_program import Note
from grader.domain.errors import CourseError
from grader.domain.evidence import Epoch, Training, TrainingOutcome
from grader.domain.formatting import as_code
from grader.domain.program_run import Ending
from grader.protocol.error_kinds import RAISED, Gap, gap_in_words
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import Answered, EpochDone, Problem, Trained, TrainingPlan
from grader.protocol.trees import MAX_NUMBER, ModelMade
from grader.protocol.worker_reports import plan_in_words, raised_at, unwritten
from grader.training.blinding import Blinding, NoAnswers
from grader.training.examples import (
    SEEN,
    attention_maps,
    example_images,
    first_of_each,
    predictions,
    some_of_each,
)
from grader.training.metrics import (
    accuracy_interval,
    confusion,
    cross_entropy,
    mean_reported,
    probabilities,
    roc_curves,
    steps_for_each_batch,
    value_interval,
)
from grader.training.trained_weights import Measurer, ModelThen, OtherModel, asked, same_answers, same_state
from grader.training.training_job import (
    EpochReport,
    FinalModel,
    Job,
    Measured,
    Report,
    ScoreFunction,
    is_crowded,
    memory_in_words,
    ran_out,
    stages,
)

MAX_EPOCHS = 10_000
LAST_EPOCHS = 5  # whose mean accuracy counts; of a short training the last quarter
PROJECTED_AFTER = 2  # epochs
MOST_OBJECTIONS = 3  # that are reported
ANSWERS_OTHERWISE = (
    "Where it was trained, the model's outputs differed from those that its class gives "
    "with the same weights."
)
FED_OTHERWISE = (
    "In training, the code changed the images before the model saw them, but the accuracy was measured "
    "without that change."
)
NO_TRANSFORM = "How it prepares its images was not found, so the handed-out preparation was used instead."
OTHER_TRANSFORM = (
    "The file's own preparation of images could not be executed by itself, so another one was used instead."
)
SAMPLED = 8  # hidden images for which the judge asks again


class Record:
    """What is known of one training.

    Attributes:
        outcome: How it ended; None while it goes on.
        loaded: The worker that trains has executed the file.
    """

    def __init__(self, job: Job, report: Report) -> None:
        self.outcome: TrainingOutcome | None = None
        self.loaded = False
        self.blinding = Blinding(job, "training", numbers=True)
        self._job = job
        self._report = report
        self._chosen = example_images(job.splits)
        self._plan: TrainingPlan | None = None
        self._epochs: list[Epoch] = []
        self._epoch_replies: list[EpochDone] = []  # without their arrays
        self._logits: Any = None  # those of the last epoch or the end, if they are finite
        self._diverged_from: int | None = None  # the first of the last epochs whose outputs are not finite
        self._augmented: float | None = None  # the accuracy of the weights in the end, with chance
        self._attention: Any = None
        self._seen_rows = some_of_each(job.splits.train_labels, SEEN)
        self._seen_accuracy: float | None = None
        self._model: ModelThen | None = None
        self._made: ModelMade | None = None
        self._trained: FinalModel | None = None
        self._restored = False
        self._other_trees: dict[str, int] = {}  # clause -> the first epoch after which it was so
        self._answers_alike = True
        self._fed_otherwise = False
        self._other_numbers = 0
        self._started = self._epoch_started = time.monotonic()
        self._reason = self._where = ""
        self._projected: float | None = None
        self._lacked_gpu_memory = False
        self._claimed: Note | None = None

    @property
    def _planned(self) -> int | None:
        """How many epochs are expected: those of a rehearsal, else those of the first loop, or more."""
        if self._plan is None:
            return None
        return max(self._job.planned or self._plan.epochs, len(self._epochs))

    @property
    def attention_of(self) -> tuple[int, ...]:
        """The test images whose attention is to be shown, as indices of the worker's."""
        return self.blinding.places(tuple(index for _, index in first_of_each(self._chosen)))

    @property
    def sampled(self) -> tuple[int, ...]:
        """Some of the test images, for which a judge asks the model again, as indices of the worker's."""
        random = np.random.default_rng([self._job.order_seed or 0, SAMPLED])
        count = len(self._job.splits.test_labels)
        return tuple(int(index) for index in random.permutation(count)[:SAMPLED])

    def take(self, reply: TrainingPlan | EpochDone | Trained, measurer: Measurer) -> None:
        """Note a reply of the worker that trains.

        Args:
            measurer: The worker that answers with the weights in the reply.

        Raises:
            BuiltOnceOnly, StudentRaised, WorkerFault, EngineError: As when it is asked.
        """
        try:
            if isinstance(reply, TrainingPlan):
                self._take_plan(reply)
            elif isinstance(reply, EpochDone):
                self._take_epoch(reply, measurer)
            else:
                self._take_end(reply, measurer)
        except OtherModel as other:
            self._object_to(other)
        except NoAnswers:
            reason = "The worker answered with something other than the model's outputs."
            self.end(TrainingOutcome.FAILED, reason)

    def _object_to(self, other: OtherModel) -> None:
        """The weights are not those of the model that was checked: nothing can be measured."""
        model = self._job.program.recipe.model
        built = as_code(model, 60) if model else "the source"
        when = f"After epoch {len(self._epochs)}" if self._epochs else "In its first epoch"
        self.end(
            TrainingOutcome.UNKNOWN,
            f"{when} the model is not the one that {built} builds and that was checked: {other}.",
        )

    def _take_plan(self, plan: TrainingPlan) -> None:
        if plan.epochs > MAX_EPOCHS:
            self.end(
                TrainingOutcome.FAILED, f"More than {MAX_EPOCHS} epochs are more than any training needs"
            )
            return
        if self._plan is not None or plan.epochs < 1:
            raise NoAnswers
        self._plan = plan
        self._epoch_started = time.monotonic()

    def _take_epoch(self, done: EpochDone, measurer: Measurer) -> None:
        number = len(self._epochs) + 1
        if self._plan is None or done.number != number or number > MAX_EPOCHS:
            raise NoAnswers
        self._made = self._made or done.made
        self._model = asked(measurer, done)
        self._note_tree(self._model, number)
        self._other_numbers = max(self._other_numbers, min(done.other_numbers, MAX_NUMBER))
        answered = self._model.answered
        logits = self.blinding.answers(answered.arrays.get("logits"))
        is_finite = bool(np.isfinite(logits).all())
        # the code may still restore earlier weights: those at the end count
        self._diverged_from = None if is_finite else self._diverged_from or number
        self._logits = logits if is_finite else None
        self._augmented = self._with_chance(answered)
        now = time.monotonic()
        epoch = Epoch(
            number=number,
            train_loss=mean_reported(done.arrays.get("reported")),
            test_loss=cross_entropy(logits, self._job.splits.test_labels) if is_finite else math.nan,
            test_accuracy=self._accuracy(logits),
            learning_rate=done.learning_rate,
            seconds=now - self._epoch_started,
            augmented_accuracy=self._augmented,
        )
        self._epoch_started = now
        self._epochs.append(epoch)
        self._epoch_replies.append(replace(done, arrays={}, modules=()))
        planned = self._planned or number
        self._report(EpochReport(epoch, planned))
        self._project(planned)

    def _project(self, planned: int) -> None:
        """End what will take longer than our limit allows, before it has taken that long.

        Schedules are never cut short: the whole training can be repeated later, with more time or on a GPU. A
        loop that may stop early is given its time.
        """
        stops = self._job.program.script.may_stop
        if len(self._epochs) != PROJECTED_AFTER or planned <= PROJECTED_AFTER or stops:
            return
        limit = self._job.limits.training_seconds
        # the first epoch also warms up; a neighbor may have slowed down either
        epoch_seconds = min(epoch.seconds for epoch in self._epochs)
        projected = time.monotonic() - self._started + epoch_seconds * (planned - PROJECTED_AFTER)
        if projected > limit:
            self._projected = projected
            self._over_budget(
                f"it was clear that all of them would take about {_minutes(projected)}, and our limit is "
                f"{_minutes(limit)}"
            )

    def _take_end(self, done: Trained, measurer: Measurer) -> None:
        if not self._epochs or self._model is None or done.epochs != len(self._epochs):
            raise NoAnswers
        last, self._model = (
            self._model,
            asked(
                measurer, done, self.attention_of, self.sampled, self.blinding.train_images[self._seen_rows]
            ),
        )
        self._note_tree(self._model, done.epochs)
        self._restored = not same_state(last.state, self._model.state)
        answered = self._model.answered
        logits = self.blinding.answers(answered.arrays.get("logits"))
        if not np.isfinite(logits).all():
            self._diverge()
            return
        self._diverged_from = None
        self._logits = logits
        inputs, scores = answered.arrays.get("inputs"), answered.arrays["logits"][list(self.sampled)]
        if inputs is None or inputs.dtype != np.float32 or inputs.ndim != 4 or len(inputs) != len(scores):
            raise NoAnswers
        self._trained = FinalModel(self._model.state, inputs, scores, self._made)
        self._augmented = self._with_chance(answered)
        self._attention = answered.arrays.get("attention")
        self._seen_accuracy = self._accuracy_of_seen(answered)
        if not same_answers(done.arrays.get("probe_logits"), answered.arrays.get("probe_logits")):
            self._answers_alike = False
        self._fed_otherwise = done.fed_otherwise
        self.outcome = TrainingOutcome.COMPLETED

    def _diverge(self) -> None:
        """The outputs are not finite at the end: the epochs since they are not are left out."""
        if self._diverged_from is None:
            self.end(TrainingOutcome.DIVERGED, "The model's outputs are not finite numbers at the end.")
            return
        self.end(
            TrainingOutcome.DIVERGED,
            f"Training diverged in epoch {self._diverged_from}: the model's outputs are no longer finite "
            "numbers. A smaller learning rate or a warm-up usually helps.",
        )
        del self._epochs[self._diverged_from - 1 :], self._epoch_replies[self._diverged_from - 1 :]

    def _note_tree(self, trained: ModelThen, epochs: int) -> None:
        """Remember how the model's tree differs from the one that was checked."""
        if trained.other_tree:
            self._other_trees.setdefault(trained.other_tree, epochs)

    def _with_chance(self, answered: Answered) -> float | None:
        """The accuracy with the random part of the student's test transform; None if it has none."""
        if "augmented" not in answered.arrays:
            return None
        logits = self.blinding.answers(answered.arrays["augmented"])
        return self._accuracy(logits) if np.isfinite(logits).all() else None

    def _accuracy_of_seen(self, answered: Answered) -> float | None:
        """The accuracy for training images; None if the model did not answer for them."""
        logits, labels = answered.arrays.get("seen_logits"), self.blinding.train_labels[self._seen_rows]
        expected = (len(labels), len(self._job.splits.classes))
        if logits is None or logits.shape != expected or not np.isfinite(logits).all():
            return None
        return float((logits.argmax(axis=1) == labels).mean())

    def _accuracy(self, logits: Any) -> float:
        """The share of images whose class is found; it is not found where the outputs are not finite."""
        right = logits.argmax(axis=1) == self._job.splits.test_labels
        return float((right & np.isfinite(logits).all(axis=1)).mean())

    def fail(self, raised: StudentRaised, ending: Ending) -> None:
        """The student's code raised.

        Only type and line are reported: the code has seen which images are not hidden, and its words could
        say so.

        Args:
            ending: How its worker ended after that, with what the kernel says about its memory.
        """
        problem, program = raised.problem, self._job.program
        where = raised_at(problem, program)
        if raised.gap:
            self._cannot_be_trained(raised.gap, problem, where)
        elif problem.type == "NotImplementedError":
            part = unwritten(problem, program.defined or {})
            part_in_words = f"`{part}`" if part else "a part of it"
            reason = f"There is nothing to train yet: {part_in_words} is not implemented."
            self.end(TrainingOutcome.FAILED, reason, where)
        elif problem.resource == "memory" and ran_out(problem, ending, self._job):
            self._lacked_gpu_memory = is_crowded(self._job)
            self._over_budget(memory_in_words(self._job))
        elif self._diverged_from is not None:
            self._diverge()
        else:
            self._claimed = _claimed_memory(problem, ending, self._job)
            epoch = f" in epoch {len(self._epochs) + 1}" if self._plan else " before the first epoch"
            reason = f"Training ended{epoch}: it raised {self._job.raised(problem)}."
            recipe = program.recipe
            if self._plan is not None or recipe.train_transform or recipe.test_transform:
                self.end(TrainingOutcome.FAILED, reason, where)
            else:  # the transform that replaced the student's is not their fault
                self.end(TrainingOutcome.UNKNOWN, f"{reason} {NO_TRANSFORM}", where)

    def _cannot_be_trained(self, gap: Gap, problem: Problem, where: str) -> None:
        reason = gap_in_words(gap, self._job.program.recipe)
        if gap == "loop_raised":
            reason = f"after {len(self._epochs)} epochs {reason}"
        if gap in RAISED:
            reason = f"{reason}: it raised {self._job.raised(problem)}"
        self.end(TrainingOutcome.UNKNOWN, f"It could not be trained: {reason}.", where)

    def give_up(self, fault: WorkerFault) -> None:
        """The worker hung, died or talked nonsense."""
        if fault.kind == "death" and fault.limit is not None:
            self._over_budget(f"{fault}")
        elif fault.kind != "time":
            self.end(TrainingOutcome.FAILED, f"Training broke off: {fault}.")
        elif not self.loaded:
            outcome = TrainingOutcome.UNKNOWN if fault.hindered else TrainingOutcome.FAILED
            self.end(outcome, f"The file could not be loaded for training: {fault}.")
        else:
            limit = self._job.limits.training_seconds
            if self._epochs:
                epoch_seconds = float(np.median([epoch.seconds for epoch in self._epochs]))
                self._projected = max(limit, epoch_seconds * (self._planned or 0))
            self._over_budget(f"our time limit of {limit:.0f} s ended it")

    def _over_budget(self, what: str) -> None:
        """One of our limits stopped it: the result is unknown, never zero."""
        planned = f" of {self._planned}" if self._planned else ""
        self.end(
            TrainingOutcome.BUDGET,
            f"After {len(self._epochs)}{planned} epochs {what}. The accuracy is unknown, not zero: a person "
            "decides, or raises the limit.",
        )

    def end(self, outcome: TrainingOutcome, reason: str, where: str = "") -> None:
        """Training is over, with this outcome."""
        self.outcome, self._reason, self._where = outcome, reason, where

    def measured(self) -> Measured:
        """The training as evidence."""
        splits = self._job.splits
        notes = tuple(self._notes())
        training = Training(
            outcome=self.outcome or TrainingOutcome.FAILED,
            reason=self._reason,
            where=self._where,
            data=splits.name,
            device=self._plan.device[:100] if self._plan else self._job.device,
            classes=splits.classes,
            epochs=tuple(self._epochs),
            planned_epochs=self._planned,
            stages=stages(self._epoch_replies, self._job.program),
            seconds=time.monotonic() - self._started,
            projected_seconds=self._projected,
            steps_per_batch=steps_for_each_batch(self._epoch_replies),
            doubts=tuple(self._doubts()),
            objections=self._objections(),
        )
        if self._logits is None or training.outcome is TrainingOutcome.DIVERGED:
            return Measured(training, {}, notes, lacked_gpu_memory=self._lacked_gpu_memory)
        predicted = self._logits.argmax(axis=1)
        accuracy, counted = self._counted()
        counts = confusion(predicted, splits.test_labels, len(splits.classes))
        shown, images = predictions(self._logits, splits, self._chosen)
        maps, pictures = attention_maps(self._attention, splits, first_of_each(self._chosen))
        training = replace(
            training,
            accuracy=accuracy,
            counted=counted,
            interval=accuracy_interval((accuracy,), len(predicted)),
            confusion=tuple(tuple(int(cell) for cell in row) for row in counts),
            seen_accuracy=self._seen_accuracy,
            roc=roc_curves(probabilities(self._logits), splits.test_labels),
            predictions=shown,
            attention=maps,
        )
        if self._job.score is not None:
            training = self._by_own_measure(training, self._job.score)
        return Measured(training, images | pictures, notes, trained=self._trained)

    def _by_own_measure(self, training: Training, score: ScoreFunction) -> Training:
        """The training, measured by the assignment's own function on the last outputs."""
        targets = self._job.splits.test_labels
        whose = "that the code restored at the end" if self._restored else "of the last epoch"
        try:
            return replace(
                training,
                value=score(self._logits, targets),
                interval=value_interval(score, self._logits, targets),
                counted=f"with the weights {whose}",
            )
        except CourseError as error:
            reason = f"It could not be measured: {error}"
            return replace(training, outcome=TrainingOutcome.UNKNOWN, reason=reason)

    def _doubts(self) -> Iterator[str]:
        if not self._answers_alike:
            yield ANSWERS_OTHERWISE
        if self._fed_otherwise:
            yield FED_OTHERWISE
        assumed = self._plan.assumed if self._plan is not None else ()
        if self._job.program.recipe.lacks_transform and "transform" in assumed:
            yield OTHER_TRANSFORM

    def _objections(self) -> tuple[str, ...]:
        return tuple(
            f"After epoch {epoch} the model is not built as the one that was checked: {difference}."
            for difference, epoch in list(self._other_trees.items())[:MOST_OBJECTIONS]
        )

    def _notes(self) -> Iterator[Note]:
        yield from map(Note, plan_in_words(self._plan))
        if self._claimed is not None:
            yield self._claimed
        if self._other_numbers:
            yield Note(
                f"In training, an optimizer also stepped {self._other_numbers:,} numbers that are not the "
                "model's: a learnable loss, or another model."
            )

    def _counted(self) -> tuple[float, str]:
        """The accuracy that counts, and which weights it belongs to.

        The accuracy of single epochs jumps by several points; their mean over the end of training does not.
        If the student's code chose weights, those count. A test transform that augments is
        measured with and without its chance, and the better one counts.
        """
        last = self._epochs[-min(LAST_EPOCHS, max(len(self._epochs) // 4, 1)) :]
        diverged = [end for end, epoch in enumerate(last[:-1], 1) if not math.isfinite(epoch.test_loss)]
        last = last[diverged[-1] if diverged else 0 :]  # the code restored weights after it
        augmented = [epoch.augmented_accuracy for epoch in last]
        if self._restored or self.outcome is not TrainingOutcome.COMPLETED or len(last) == 1:
            counted = (
                "of the weights that the code restored at the end" if self._restored else "of the last epoch"
            )
            plain, chance = self._accuracy(self._logits), self._augmented
        else:
            counted = f"the mean of the last {len(last)} epochs"
            plain = float(np.mean([epoch.test_accuracy for epoch in last]))
            measured = [value for value in augmented if value is not None]
            chance = float(np.mean(measured)) if len(measured) == len(last) else None
        if chance is None:
            return plain, counted
        if chance > plain:
            return chance, f"{counted}, with the augmentation that is in the test transform"
        return plain, f"{counted}, without the augmentation that is in the test transform"


def _claimed_memory(problem: Problem, ending: Ending, job: Job) -> Note | None:
    """A note that an exception speaks of memory although no measurement of ours does; else None.

    A person reads it; it decides nothing, so the exception's words may be considered.
    """
    text = f"{problem.type} {problem.message.text}".lower()
    if problem.resource != "memory" and not re.search(r"memory", text):
        return None
    if job.device == "cuda":
        measured = f"PyTorch held at most {problem.gpu_share:.0%} of the GPU's memory"
    elif ending.memory_mb is None:
        measured = "nothing here limits its memory"
    else:
        measured = f"it held at most {ending.memory_mb} MB of its limit of {job.limits.memory_mb} MB"
    return Note(
        f"The training ended with an exception that mentions memory, but {measured}; "
        "a person should look at the line.",
        ask_person=True,
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
