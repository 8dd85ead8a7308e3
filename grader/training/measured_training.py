"""Training for a measure: its job, a rehearsal, then one training, or several with other seeds.

It makes the job of a measure and rehearses the training on a few made-up images, so that people can read
beforehand what will be trained. It then trains in one worker while another measures each epoch. The worker
that trains has seen the training images and executed the student's loop. It returns weights, and nothing
else of it counts: in the other worker, which has not seen any of this, the student's class as it was checked
gets these weights and answers. Near the
threshold, where chance would decide, three seeds are trained, and the mean counts. It never decides about
points.
"""

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grader.course.measures import measure_function
from grader.domain.analyzed_program import TRAINING
from grader.domain.assignment import Assignment, trainers
from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import Training, TrainingOutcome, UnfinishedRun
from grader.domain.measure import SHARE, Measure, Scale
from grader.domain.program_run import Rehearsal
from grader.kit.splits import Examples, Splits
from grader.protocol.error_kinds import RAISED, gap_in_words
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Loaded, Stepped, Trained, TrainingPlan
from grader.protocol.requests import Train, glimpse_of
from grader.protocol.worker_reports import raised_at
from grader.training.called_training import NotUsable, called_training, loaded_for, trained_by
from grader.training.metrics import accuracy_interval, mean_interval, score_of
from grader.training.trained_weights import STATE_LIMIT, BuiltOnceOnly, Measurer
from grader.training.training_job import (
    REPLY_LIMIT,
    AnyJob,
    CalledJob,
    EpochReport,
    Job,
    Measured,
    Report,
    Workers,
    stages,
)
from grader.training.training_record import Record


def job_of(
    assignment: Assignment, measure: Measure, data: Splits | Examples, **execution: Any
) -> Job | CalledJob:
    """What is trained for a measure.

    Args:
        data: What it is trained and measured on.
        execution: The fields of `Execution`, except the assignment's id.

    Raises:
        CourseError: The measure's function cannot be loaded.
    """
    execution["assignment"] = assignment.id
    score = score_of(measure_function(assignment, measure), measure.id) if measure.function else None
    if measure.call is None:
        assert isinstance(data, Splits)  # `course` refuses other data for a training without `[measure.call]`
        return Job(splits=data, score=score, **execution)
    if isinstance(data, Examples):
        return CalledJob(examples=data, call=measure.call, score=score, **execution)
    return CalledJob(
        examples=images_as_examples(data),
        call=measure.call,
        trainer=next(iter(trainers(assignment.components, measure.roles)), ""),
        score=score,
        scaled=True,
        splits=data,
        **execution,
    )


def images_as_examples(splits: Splits) -> Examples:
    """Images as inputs, uint8 (n, channels, height, width), with their labels as targets."""
    return Examples(
        splits.name,
        _channels_first(splits.train_images),
        splits.train_labels,
        _channels_first(splits.test_images),
        splits.test_labels,
    )


def _channels_first(images: Any) -> Any:
    return images[:, None] if images.ndim == 3 else np.ascontiguousarray(np.moveaxis(images, -1, 1))


# --- rehearsal -------------------------------------------------------------------------------------------


IMAGES_PER_CLASS = 4
SECONDS = 30.0
MOST_MODELS = 1000  # that are reported
MAX_MODEL_SIZE = 10**15  # of a model's size
NOISE = 5  # the seed of what the images show


def made_up_images(classes: tuple[str, ...], shape: tuple[int, ...]) -> Splits:
    """A few images of noise in each class.

    Args:
        shape: Of an image, (height, width) gray or (height, width, 3).
    """
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), IMAGES_PER_CLASS)
    images = np.random.default_rng(NOISE).integers(0, 256, (len(labels), *shape), dtype=np.uint8)
    names = tuple(f"{classes[label]}/made_up_{index}.png" for index, label in enumerate(labels))
    return Splits("made_up", classes, images, labels, names, images, labels, names)


def rehearsed(workers: Workers, job: Job, seconds: float = SECONDS) -> Rehearsal:
    """Train on made-up images, of the same size as those of the job, and report what was seen.

    Nothing in the report depends on real images, so anybody may read it.

    Args:
        seconds: How long it may take at most.
    """
    splits = job.splits
    epochs: list[EpochDone] = []
    few = made_up_images(splits.classes, splits.train_images.shape[1:])
    seconds = min(seconds, job.limits.training_seconds)
    others, complete, fault, where = 0, False, "", ""
    sizes: tuple[int | None, int | None] = (None, None)
    size, has_transform = None, False
    train = Train(
        class_names=splits.classes,
        device=job.device,
        seed=job.seed,
        gpu_memory_mb=job.gpu_memory_mb,
        sized=True,
        arrays={"train_images": few.train_images, "train_labels": few.train_labels},
    )
    with contextlib.closing(job.linked(workers())) as link:
        try:
            link.ask(job.load(splits.classes), Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            link.watch.stage = TRAINING
            replies = (TrainingPlan, EpochDone, Trained)
            for reply in link.conversation(train, replies, seconds=seconds, limit=STATE_LIMIT):
                if isinstance(reply, TrainingPlan):
                    size, has_transform = _found(reply)
                elif isinstance(reply, EpochDone):
                    epochs.append(replace(reply, arrays={}, modules=()))
                else:
                    others, complete = max(min(reply.other_models, MOST_MODELS), 0), True
                    sizes = (_possible_size(reply.parameters), _possible_size(reply.multiply_adds))
                    break
        except StudentRaised as raised:
            fault, where = _in_words(raised, job), raised_at(raised.problem, job.program)
        except WorkerFault as error:
            if error.kind != "time":
                fault = f"It cannot be trained: {error}."
        except SandboxError:
            raise
        except EngineError as error:
            fault = str(error)
    return Rehearsal(stages(epochs, job.program), others, complete, fault, where, *sizes, size, has_transform)


def _found(plan: TrainingPlan) -> tuple[int | None, bool]:
    """The batch size, if the student's code gives one that is possible, and whether it gives a transform."""
    known = "batch_size" not in plan.assumed and 1 <= plan.batch_size <= MAX_MODEL_SIZE
    return plan.batch_size if known else None, "transform" not in plan.assumed


def _possible_size(size: int) -> int | None:
    """A size that a worker reports; None if it cannot be one."""
    return size if 0 <= size <= MAX_MODEL_SIZE else None


def _in_words(raised: StudentRaised, job: Job) -> str:
    reason = gap_in_words(raised.gap, job.program.recipe) if raised.gap else "it raised an exception"
    detail = f": {job.raised(raised.problem)}" if raised.gap in ("", *RAISED) else ""
    return f"It cannot be trained: {reason}{detail}."


# --- called rehearsal ------------------------------------------------------------------------------------


def rehearsed_call(workers: Workers, job: CalledJob) -> Rehearsal | None:
    """Train on made-up images, of the same size as those of the job, and report what stages were seen.

    Returns:
        None where there are no images, or no pass over them could be seen.
    """
    if job.splits is None:
        return None
    few = made_up_images(job.splits.classes, job.splits.train_images.shape[1:])
    limits = replace(job.limits, training_seconds=min(SECONDS, job.limits.training_seconds))
    trial = replace(job, splits=few, examples=images_as_examples(few), limits=limits)
    epochs: list[EpochDone] = []
    complete = False

    def note(done: EpochDone | Stepped) -> None:
        if isinstance(done, EpochDone):
            epochs.append(replace(done, arrays={}, modules=()))

    with (
        contextlib.closing(trial.linked(workers())) as link,
        # the training itself will report what is wrong
        contextlib.suppress(StudentRaised, WorkerFault, NotUsable, EngineError),
    ):
        loaded_for(link, trial)
        trained_by(link, trial, note)
        complete = True
    return Rehearsal(stages(epochs, job.program), complete=complete) if epochs else None


# --- measured training -----------------------------------------------------------------------------------


def measured_training(workers: Workers, job: Job, report: Report = lambda _: None) -> Measured:
    """Train the submission and measure it.

    Args:
        report: Called with each epoch.
    """
    record = Record(job, report)
    blinding = record.blinding
    labels = blinding.train_labels
    load = job.load(blinding.classes)
    with contextlib.ExitStack() as stack:
        trainer = job.linked(workers())
        stack.callback(trainer.close)
        arrays = {
            "train_labels": labels,
            "glimpse": glimpse_of(blinding.train_images),
            "test_images": blinding.test_images,
        }
        measurer = Measurer(workers(), job, load, arrays)
        stack.callback(measurer.close)
        answering = trainer
        try:
            trainer.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            record.loaded = True
            trainer.watch.stage = TRAINING
            prove_watch(trainer, job)
            share = job.gpu_memory_mb  # a quarter of it is left to the worker that measures
            train = Train(
                class_names=blinding.classes,
                device=job.device,
                seed=job.seed,
                gpu_memory_mb=share and share - share // 4,
                other=job.other,
                arrays={"train_images": blinding.train_images, "train_labels": labels},
            )
            replies = (TrainingPlan, EpochDone, Trained)
            seconds = job.limits.training_seconds
            for reply in trainer.conversation(train, replies, seconds=seconds, limit=STATE_LIMIT):
                answering = measurer.link
                record.take(reply, measurer)
                if record.outcome is not None:
                    break
                answering = trainer
            if record.outcome is TrainingOutcome.COMPLETED:
                prove_watch(trainer, job)
                prove_watch(measurer.link, job)
        except StudentRaised as raised:
            answering.close()  # what the kernel says about its memory is known once it has ended
            record.fail(raised, answering.process.ending())
        except BuiltOnceOnly as error:
            record.end(TrainingOutcome.UNKNOWN, f"The model cannot be measured: {error}.")
        except WorkerFault as fault:
            record.give_up(fault)
        except SandboxError:  # nothing is known of the submission: the next run examines it again
            raise
        except EngineError as error:
            record.end(TrainingOutcome.UNKNOWN, str(error))
    watched = trainer.watch.watched | measurer.link.watch.watched
    return replace(record.measured(), attestation=trainer.process.attestation, watched=watched)


def prove_watch(link: Link, job: Job) -> None:
    """Test whether every watched part still reports its use."""
    token, seconds = secrets.randbelow(2**31), job.limits.load_seconds
    link.prove_watch(token, seconds=seconds, limit=REPLY_LIMIT)


# --- repetition ------------------------------------------------------------------------------------------


RUNS = 3


def repeated_training(
    workers: Workers,
    jobs: Callable[[int], AnyJob],
    threshold: float | None,
    report: Report = lambda _: None,
    runs: int = 1,
    scale: Scale = SHARE,
) -> Measured:
    """Train the submission; near the threshold three times, each with a seed of its own.

    Args:
        jobs: The job of each training by its number, 1-based, with the seeds of that number.
        threshold: What the assignment asks for; None if it asks for nothing.
        report: Called with each epoch.
        runs: Train at least this many times, whatever is measured.
        scale: How the threshold and what is measured are read.

    Returns:
        The first training, with the mean of all completed ones as its value. It also lists those that
        were not completed, whose values are unknown.
    """
    first = trained_once(workers, jobs(1), _numbered(report, 1, runs))
    training, value = first.training, first.training.measured
    if training.outcome is not TrainingOutcome.COMPLETED or value is None:
        return first
    if is_near(training, threshold, scale):
        runs = max(runs, RUNS)
    if runs == 1:
        return first
    values, unfinished, lacked_gpu_memory = [value], [], first.lacked_gpu_memory
    doubts, objections = dict.fromkeys(training.doubts), dict.fromkeys(training.objections)
    for run in range(2, runs + 1):
        other = trained_once(workers, jobs(run), _numbered(report, run, runs))
        ended = other.training
        first = replace(first, watched=first.watched | other.watched)
        doubts |= dict.fromkeys(ended.doubts)
        objections |= dict.fromkeys(ended.objections)
        if ended.outcome is TrainingOutcome.COMPLETED and ended.measured is not None:
            values.append(ended.measured)
        else:
            unfinished.append(
                UnfinishedRun(run, ended.outcome, ended.reason, ended.where, ended.projected_seconds)
            )
            lacked_gpu_memory |= other.lacked_gpu_memory
    training = replace(
        _with_mean(training, values),
        runs=tuple(values),
        doubts=tuple(doubts),
        objections=tuple(objections),
        unfinished=tuple(unfinished),
    )
    return replace(first, training=training, lacked_gpu_memory=lacked_gpu_memory)


def trained_once(workers: Workers, job: AnyJob, report: Report = lambda _: None) -> Measured:
    """Train the submission once, as the job says."""
    if isinstance(job, CalledJob):
        return called_training(workers, job, report)
    return measured_training(workers, job, report)


def _with_mean(training: Training, values: Sequence[float]) -> Training:
    mean = sum(values) / len(values)
    if training.value is not None:
        interval = mean_interval(values, training.interval or (values[0], values[0]))
        return replace(training, value=mean, interval=interval)
    images = sum(map(sum, training.confusion))
    return replace(training, accuracy=mean, interval=accuracy_interval(values, images))


def is_near(training: Training, threshold: float | None, scale: Scale = SHARE) -> bool:
    """Whether what was measured is so near the threshold that another seed might be on its other side."""
    if threshold is None or training.measured is None:
        return False
    return scale.is_near(training.measured, threshold)


def _numbered(report: Report, run: int, runs: int) -> Report:
    return lambda progress: report(EpochReport(progress.epoch, progress.planned, run, runs))
