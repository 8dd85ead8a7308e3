"""Training a submission once: in one worker, and measured epoch by epoch in another.

The worker that trains has seen the training images and executed the student's loop. What it has become is
data: weights, which the student's class, as it was checked, answers with in a worker that knows nothing else.
"""

import contextlib
from dataclasses import replace

from grader.domain.errors import EngineError
from grader.domain.evidence import TrainingOutcome
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import Load, Train
from grader.training.job import REPLY_LIMIT, Job, Measured, Report, Workers
from grader.training.measuring import STATE_LIMIT, BuiltOnceOnly, Measurer
from grader.training.record import Record


def measured_training(workers: Workers, job: Job, report: Report = lambda told: None) -> Measured:
    """Train the submission and measure it.

    Args:
        report: Told each epoch.
    """
    record = Record(job, report)
    blinding = record.blinding
    labels = blinding.train_labels
    load = Load(job.program, job.forbidden, blinding.classes, job.seed, job.device)
    with contextlib.ExitStack() as stack:
        trainer = Link(workers())
        stack.callback(trainer.close)
        arrays = {"train_labels": labels, "test_images": blinding.test_images}
        measurer = Measurer(workers(), job, load, arrays)
        stack.callback(measurer.close)
        try:
            trainer.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            share = job.gpu_memory_mb
            train = Train(
                class_names=blinding.classes,
                device=job.device,
                seed=job.seed,
                gpu_memory_mb=share and share - share // 4,
                arrays={"train_images": blinding.train_images, "train_labels": labels},
            )
            replies = (TrainingPlan, EpochDone, Trained)
            seconds = job.limits.training_seconds
            for reply in trainer.conversation(train, replies, seconds=seconds, limit=STATE_LIMIT):
                record.take(reply, measurer)
                if record.outcome is not None:
                    break
        except StudentRaised as raised:
            record.fail(raised)
        except BuiltOnceOnly as error:
            record.end(TrainingOutcome.UNKNOWN, f"The model cannot be measured: {error}.")
        except WorkerFault as fault:
            record.give_up(fault)
        except EngineError as error:
            record.end(TrainingOutcome.UNKNOWN, str(error))
    return replace(record.measured(), attestation=trainer.process.attestation)
