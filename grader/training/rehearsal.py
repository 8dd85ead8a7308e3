"""A trial of the training on a few made-up images, so that people read beforehand what will be trained."""

import contextlib
from dataclasses import replace

import numpy as np

from grader.domain.errors import EngineError
from grader.domain.plan import Rehearsal
from grader.domain.program import TRAINING
from grader.kit.splits import Splits
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.raised import raised_at
from grader.protocol.recipe_gaps import RAISED, gap_in_words
from grader.protocol.replies import EpochDone, Loaded, Trained, TrainingPlan
from grader.protocol.requests import Train
from grader.training.stages import stages
from grader.training.training_job import REPLY_LIMIT, Job, Workers
from grader.training.weights_measured import STATE_LIMIT

IMAGES_PER_CLASS = 4
SECONDS = 30.0
MOST_MODELS = 1000  # that are told
MOST_TOLD = 10**15  # of a model's size
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
    """Train on made-up images, of the same size as those of the job, and tell what was seen.

    Nothing of it depends on real images, so that everybody may read it.

    Args:
        seconds: How long it may take at most.
    """
    splits = job.splits
    told: list[EpochDone] = []
    few = made_up_images(splits.classes, splits.train_images.shape[1:])
    seconds = min(seconds, job.limits.training_seconds)
    others, complete, fault, where = 0, False, "", ""
    sizes: tuple[int | None, int | None] = (None, None)
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
                if isinstance(reply, EpochDone):
                    told.append(replace(reply, arrays={}, modules=()))
                elif isinstance(reply, Trained):
                    others, complete = max(min(reply.other_models, MOST_MODELS), 0), True
                    sizes = (_possible(reply.parameters), _possible(reply.multiply_adds))
                    break
        except StudentRaised as raised:
            fault, where = _in_words(raised, job), raised_at(raised.problem, job.program)
        except WorkerFault as error:
            if error.kind != "time":
                fault = f"It cannot be trained: {error}."
        except EngineError as error:
            fault = str(error)
    return Rehearsal(stages(told, job.program), others, complete, fault, where, *sizes)


def _possible(size: int) -> int | None:
    """A size that a worker tells; None where there is no such size."""
    return size if 0 <= size <= MOST_TOLD else None


def _in_words(raised: StudentRaised, job: Job) -> str:
    told = gap_in_words(raised.gap, job.program.recipe) if raised.gap else "it raised an exception"
    said = f": {job.raised(raised.problem)}" if raised.gap in ("", *RAISED) else ""
    return f"It cannot be trained: {told}{said}."
