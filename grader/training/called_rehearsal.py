"""A trial of a training by a call on a few made-up images: its stages, which everybody may read."""

import contextlib
from dataclasses import replace

from grader.domain.errors import EngineError
from grader.domain.plan import Rehearsal
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import EpochDone
from grader.training.called_training import NotUsable, loaded_for, trained_by
from grader.training.measure_job import images_as_examples
from grader.training.rehearsal import SECONDS, made_up_images
from grader.training.stages import stages
from grader.training.training_job import CalledJob, Workers


def rehearsed_call(workers: Workers, job: CalledJob) -> Rehearsal | None:
    """Train on made-up images, of the same size as those of the job, and tell what stages were seen.

    Returns:
        None where there are no images, or no pass over them could be seen.
    """
    if job.splits is None:
        return None
    few = made_up_images(job.splits.classes, job.splits.train_images.shape[1:])
    limits = replace(job.limits, training_seconds=min(SECONDS, job.limits.training_seconds))
    trial = replace(job, splits=few, examples=images_as_examples(few), limits=limits)
    told: list[EpochDone] = []
    complete = False
    with (
        contextlib.closing(trial.linked(workers())) as link,
        # what is wrong with it is told by the training itself
        contextlib.suppress(StudentRaised, WorkerFault, NotUsable, EngineError),
    ):
        loaded_for(link, trial)
        trained_by(link, trial, lambda done: told.append(replace(done, arrays={}, modules=())))
        complete = True
    return Rehearsal(stages(told, job.program), complete=complete) if told else None
