"""Training a submission in a worker, once."""

import secrets
from dataclasses import replace

from grader.domain.errors import EngineError
from grader.domain.evidence import TrainingOutcome
from grader.domain.program import TRAINING
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import Load, Train
from grader.protocol.watching import WatchRecord
from grader.training.job import REPLY_LIMIT, Job, Measured, Report, Workers
from grader.training.record import Record


def measured_training(workers: Workers, job: Job, report: Report = lambda told: None) -> Measured:
    """Train the submission and measure it.

    Args:
        report: Told each epoch.
    """
    record = Record(job, report)
    blinding = record.blinding
    link = Link(workers(), WatchRecord(job.forbidden, tuple(job.program.source or {})))
    try:
        load = Load(job.program, job.forbidden, blinding.classes, job.seed, job.device)
        link.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
        link.watch.stage = TRAINING
        _prove_watch(link, job)
        train = Train(
            class_names=blinding.classes,
            device=job.device,
            seed=job.seed,
            gpu_memory_mb=job.gpu_memory_mb,
            attention_of=record.attention_of,
            arrays={
                "train_images": blinding.train_images,
                "train_labels": blinding.train_labels,
                "test_images": blinding.test_images,
            },
        )
        replies = (TrainingPlan, EpochDone, Trained)
        seconds = job.limits.training_seconds
        for reply in link.conversation(train, replies, seconds=seconds, limit=REPLY_LIMIT):
            record.take(reply)
            if record.outcome is not None:
                break
        if record.outcome is TrainingOutcome.COMPLETED:
            _prove_watch(link, job)
    except StudentRaised as raised:
        record.fail(raised)
    except WorkerFault as fault:
        record.give_up(fault)
    except EngineError as error:
        record.end(TrainingOutcome.UNKNOWN, str(error))
    finally:
        link.close()
    return replace(record.measured(), attestation=link.process.attestation, watched=link.watch.watched)


def _prove_watch(link: Link, job: Job) -> None:
    """Try whether all that is watched still tells that it is used."""
    token, seconds = secrets.randbelow(2**31), job.limits.load_seconds
    link.prove_watch(token, seconds=seconds, limit=REPLY_LIMIT)
