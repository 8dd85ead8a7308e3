"""Training a submission once: in one worker, and measured epoch by epoch in another.

The worker that trains has seen the training images and executed the student's loop. What it has become is
data: weights, which the student's class, as it was checked, answers with in a worker that knows nothing else.
"""

import contextlib
import secrets
from dataclasses import replace

from grader.domain.errors import EngineError
from grader.domain.evidence import TrainingOutcome
from grader.domain.program import TRAINING
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import Train
from grader.training.training_job import REPLY_LIMIT, Job, Measured, Report, Workers
from grader.training.training_record import Record
from grader.training.weights_measured import STATE_LIMIT, BuiltOnceOnly, Measurer


def measured_training(workers: Workers, job: Job, report: Report = lambda told: None) -> Measured:
    """Train the submission and measure it.

    Args:
        report: Told each epoch.
    """
    record = Record(job, report)
    blinding = record.blinding
    labels = blinding.train_labels
    load = job.load(blinding.classes)
    with contextlib.ExitStack() as stack:
        trainer = job.linked(workers())
        stack.callback(trainer.close)
        arrays = {"train_labels": labels, "test_images": blinding.test_images}
        measurer = Measurer(workers(), job, load, arrays)
        stack.callback(measurer.close)
        answering = trainer
        try:
            trainer.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            record.loaded = True
            trainer.watch.stage = TRAINING
            prove_watch(trainer, job)
            share = job.gpu_memory_mb
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
            answering.close()  # what the kernel says of its memory is known when it has ended
            record.fail(raised, answering.process.ending())
        except BuiltOnceOnly as error:
            record.end(TrainingOutcome.UNKNOWN, f"The model cannot be measured: {error}.")
        except WorkerFault as fault:
            record.give_up(fault)
        except EngineError as error:
            record.end(TrainingOutcome.UNKNOWN, str(error))
    watched = trainer.watch.watched | measurer.link.watch.watched
    return replace(record.measured(), attestation=trainer.process.attestation, watched=watched)


def prove_watch(link: Link, job: Job) -> None:
    """Try whether all that is watched still tells that it is used."""
    token, seconds = secrets.randbelow(2**31), job.limits.load_seconds
    link.prove_watch(token, seconds=seconds, limit=REPLY_LIMIT)
