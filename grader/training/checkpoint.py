"""Submitted weights in the submitted model: whether they fit, and how well they do.

What a worker says about the file is told to the student, so it is asked before it has seen a hidden image;
what it says afterwards is numbers.
"""

from typing import Any

import numpy as np

from grader.domain.errors import EngineError
from grader.domain.evidence import Checkpoint
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import CheckpointLoaded, Loaded
from grader.protocol.requests import Load, LoadCheckpoint
from grader.training.blinding import Blinding, NoAnswers
from grader.training.job import REPLY_LIMIT, Job, Workers


def measured_checkpoint(workers: Workers, job: Job, data: bytes, name: str) -> Checkpoint:
    """Load a submitted checkpoint into the submitted model, and its accuracy on the hidden images.

    Args:
        data: The file, already bounded in size.
        name: The file's name, for the sentences.
    """
    blinding = Blinding(job, "checkpoint", numbers=False)
    link = Link(workers())
    try:
        load = Load(job.program, job.forbidden, blinding.classes, job.seed, job.device)
        link.ask(load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
        loaded = _asked(link, job, data, _noise(job.splits.test_images), job.limits.call_seconds)
        if loaded.status == "fits":
            return _measured(link, blinding, job, data, name)
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
    return _misfit(loaded, name)


def _asked(link: Link, job: Job, data: bytes, images: Any, seconds: float) -> CheckpointLoaded:
    """What a worker says of a file and of images, uint8 (n, height, width[, 3]).

    Args:
        seconds: For the images, beside the time of loading.
    """
    request = LoadCheckpoint(
        job.device,
        4_000_000 * job.limits.checkpoint_mb,  # what a file holds may be spread out a little in memory
        arrays={"file": np.frombuffer(data, dtype=np.uint8), "test_images": images},
    )
    seconds += job.limits.load_seconds
    return link.ask(request, CheckpointLoaded, seconds=seconds, limit=REPLY_LIMIT)


def _noise(images: Any) -> Any:
    """One image of the size of others that shows nothing, uint8 (1, height, width[, 3])."""
    return np.random.default_rng(0).integers(0, 256, (1, *images.shape[1:]), dtype=np.uint8)


def _measured(link: Link, blinding: Blinding, job: Job, data: bytes, name: str) -> Checkpoint:
    """The accuracy of weights that fit; of what is said otherwise, not a word is repeated.

    Raises:
        WorkerFault: The worker hung or died.
    """
    try:
        loaded = _asked(link, job, data, blinding.test_images, 6 * job.limits.call_seconds)
        logits = blinding.answers(loaded.arrays.get("logits"))
    except (StudentRaised, EngineError):
        told = f"{name} fits the model, which then could not answer for the hidden images."
        return Checkpoint("not_tried", told)
    except NoAnswers:
        logits = np.array([np.nan])
    if not np.isfinite(logits).all():
        return Checkpoint("refused", f"{name}: the model's outputs with it are not usable numbers.")
    return Checkpoint("fits", accuracy=float((logits.argmax(axis=1) == job.splits.test_labels).mean()))


def _misfit(loaded: CheckpointLoaded, name: str) -> Checkpoint:
    if loaded.status == "mismatch":
        return Checkpoint(
            "mismatch",
            f"{name} does not belong to the submitted model: {loaded.reason[:400]}. Save the weights of the "
            "model that is handed in: torch.save(model.state_dict(), path).",
        )
    status = "whole_model" if loaded.status == "whole_model" else "refused"
    return Checkpoint(status, f"{name}: {loaded.reason[:400]}.")
