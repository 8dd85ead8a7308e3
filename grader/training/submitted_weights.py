"""Submitted weights in the submitted model: whether they fit, why not, and how well they do.

The student reads what a worker says about the file, so it is asked before it has seen a hidden image;
afterwards only numbers are taken from it. Here is also put into words why weights are not those of a model.
It never decides about points.
"""

import itertools
import re
from collections.abc import Set
from itertools import chain
from typing import Any

import numpy as np

from grader.domain.analyzed_program import Program
from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import Checkpoint
from grader.domain.formatting import counted, file_named, named
from grader.protocol.error_kinds import gap_in_words
from grader.protocol.link import Link, StudentRaised, WorkerFault
from grader.protocol.replies import CheckpointLoaded, Loaded, Misfit
from grader.protocol.requests import LoadCheckpoint, glimpse_of
from grader.protocol.worker_reports import raised_at
from grader.training.blinding import Blinding, NoAnswers
from grader.training.training_job import REPLY_LIMIT, Job, Workers

MOST_PARTS = 8  # of a tensor's name
MOST_COUNTED = 1_000_000
# arguments that make a tensor as large as it is, or a list as long
SIZES = ("depth", "dim", "heads", "dim_head", "mlp_dim", "channels", "image_size", "patch_size")
_TENSORS = frozenset(
    {"weight", "bias", "in_proj_weight", "in_proj_bias", "out_proj", "running_mean", "running_var"}
)
_WORD = re.compile(r"\w+")


def misfit_in_words(misfit: Misfit | None, program: Program) -> str:
    """What keeps weights from fitting, as a clause.

    The worker may have the hidden images: a tensor's name is shown only if it consists of the source's words.
    """
    counts: tuple[int, ...] = ()
    if misfit is not None:
        counts = (misfit.missing, misfit.unknown, misfit.tensors, *chain(*misfit.shapes), *misfit.entries)
    if misfit is None or any(not 0 <= count <= MOST_COUNTED for count in counts):
        return "its tensors are others"
    words = {word for text in (program.source or {}).values() for word in _WORD.findall(text)} | _TENSORS
    parts = misfit.example.split(".")
    is_tellable = len(parts) <= MOST_PARTS and all(part.isdecimal() or part in words for part in parts)
    if misfit.shapes:
        stored, expected = (tuple(side for side in shape[:5]) for shape in (*misfit.shapes, (), ())[:2])
        tensor = named(misfit.example) if is_tellable else "a tensor"
        sentence = f"{tensor} has the shape {stored} in it and {expected} in the model"
        sides = {in_model for in_file, in_model in zip(stored, expected, strict=False) if in_file != in_model}
        return sentence + _sizes_in_code(program, sides)
    if len(misfit.entries) == 2 and misfit.entries[0] != misfit.entries[1]:
        stored_entries, built_entries = misfit.entries
        where = (
            named(".".join(itertools.takewhile(lambda part: not part.isdecimal(), parts)))
            if is_tellable
            else ""
        )
        kept_in_words = counted(stored_entries, "entry", "entries")
        sentence = f"{where or 'a list of layers'} has {kept_in_words} in it and {built_entries} in the model"
        return sentence + _sizes_in_code(program, {built_entries})
    sentence = (
        f"{misfit.missing} of the model's {misfit.tensors} tensors are missing in it and {misfit.unknown} of "
        "its own are not in the model"
    )
    which = "is missing" if misfit.missing else "is not in the model"
    return f"{sentence} (for example {named(misfit.example)} {which})" if is_tellable else sentence


def _sizes_in_code(program: Program, sides: Set[int]) -> str:
    """Which of the student's settings have these values: they were probably changed since."""
    chosen = {value.name: value.value for value in program.tuned if value.name in SIZES}
    same = [f"{name}={value}" for name, value in chosen.items() if value.isdecimal() and int(value) in sides]
    if not same:
        integers = {name: int(value) for name, value in chosen.items() if value.isdecimal()}
        if (side := integers.get("image_size")) and (patch := integers.get("patch_size")):
            number = (side // patch) ** 2
            same = [f"image_size={side} and patch_size={patch}"] if sides & {number, number + 1} else []
    return f" (in the code: {' or '.join(same)})" if same else ""


# --- submitted weights -----------------------------------------------------------------------------------


WHOLE_MODEL = (
    "it holds a whole pickled object, which is not loaded but counts as handed in: the next time, save "
    "`model.state_dict()` instead of `model`"
)
AGAIN = "save it again with `torch.save(model.state_dict(), path)`"
FAULTS = {
    "unreadable": f"it cannot be read: {AGAIN}",
    "no_state_dict": f"it holds no state_dict: {AGAIN}",
    "odd_entry": f"it holds something other than plain tensors: {AGAIN}",
    "too_large": "its tensors claim more memory than the file can hold",
}


def measured_checkpoint(workers: Workers, job: Job, data: bytes, name: str) -> Checkpoint:
    """Load a submitted checkpoint into the submitted model, and measure it on the hidden images.

    Args:
        data: The file, already bounded in size.
        name: The file's name, for the sentences.
    """
    blinding = Blinding(job, "checkpoint", numbers=False)
    link = job.linked(workers())
    try:
        link.ask(job.load(blinding.classes), Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
        noise = _noise(job.splits.test_images)
        loaded = _loaded_checkpoint(link, job, data, noise, noise, job.limits.call_seconds)
        if loaded.status == "fits":
            return _measured(link, blinding, job, data, name)
    except StudentRaised as raised:
        return Checkpoint(
            "not_tried", f"{file_named(name)}: it could not be tried ({_why_not(raised, job)})."
        )
    except WorkerFault as fault:
        status = "not_tried" if fault.kind == "time" else "refused"
        return Checkpoint(status, f"{file_named(name)}: loading it failed: {fault}.")
    except SandboxError:
        raise
    except EngineError as error:
        return Checkpoint("not_tried", f"{file_named(name)}: {error}")
    finally:
        link.close()
    return _wrong(loaded, job, name)


def _loaded_checkpoint(
    link: Link, job: Job, data: bytes, images: Any, trained_on: Any, seconds: float
) -> CheckpointLoaded:
    """A worker's reply about a file and images, uint8 (n, height, width[, 3]).

    Args:
        trained_on: Images of the training, in the same form.
        seconds: For the images, in addition to the time for loading.
    """
    request = LoadCheckpoint(
        job.device,
        4_000_000 * job.limits.checkpoint_mb,  # a file's content may take a little more room in memory
        arrays={
            "file": np.frombuffer(data, dtype=np.uint8),
            "glimpse": glimpse_of(trained_on),
            "test_images": images,
        },
    )
    seconds += job.limits.load_seconds
    return link.ask(request, CheckpointLoaded, seconds=seconds, limit=REPLY_LIMIT)


def _noise(images: Any) -> Any:
    """One image of the size of others that shows nothing, uint8 (1, height, width[, 3])."""
    return np.random.default_rng(0).integers(0, 256, (1, *images.shape[1:]), dtype=np.uint8)


def _measured(link: Link, blinding: Blinding, job: Job, data: bytes, name: str) -> Checkpoint:
    """The accuracy of weights that fit; the worker's words are never repeated.

    Raises:
        WorkerFault: The worker hung or died.
        SandboxError: Its host is gone.
    """
    try:
        images, trained_on = blinding.test_images, blinding.train_images
        loaded = _loaded_checkpoint(link, job, data, images, trained_on, 6 * job.limits.call_seconds)
        logits = blinding.answers(loaded.arrays.get("logits"))
    except SandboxError:
        raise
    except (StudentRaised, EngineError):
        reason = f"{file_named(name)} fits the model, which then could not be evaluated on the hidden images."
        return Checkpoint("not_tried", reason)
    except NoAnswers:
        logits = np.array([np.nan])
    if not np.isfinite(logits).all():
        return Checkpoint(
            "refused", f"{file_named(name)}: the model's outputs with it are not usable numbers."
        )
    right = logits.argmax(axis=1) == job.splits.test_labels
    withheld = job.splits.withheld
    if withheld is None or not withheld.any():
        return Checkpoint("fits", accuracy=float(right.mean()))
    return Checkpoint("fits", accuracy=float(right[withheld].mean()), withheld=int(withheld.sum()))


def _wrong(loaded: CheckpointLoaded, job: Job, name: str) -> Checkpoint:
    shown = file_named(name)
    if loaded.status == "mismatch":
        why = misfit_in_words(loaded.misfit, job.program)
        return Checkpoint(
            "mismatch",
            f"{shown} does not belong to the submitted model: {why}. Save the weights of the "
            "model that is handed in: torch.save(model.state_dict(), path).",
        )
    if loaded.status == "whole_model":
        return Checkpoint("whole_model", f"{shown}: {WHOLE_MODEL}.")
    return Checkpoint("refused", f"{shown}: {FAULTS.get(loaded.fault, 'it was not loaded')}.")


def _why_not(raised: StudentRaised, job: Job) -> str:
    """Why a checkpoint could not be tried: only type and line, because its worker has the hidden images."""
    if raised.gap:
        return gap_in_words(raised.gap, job.program.recipe)
    where = raised_at(raised.problem, job.program)
    return f"the code raised {job.raised(raised.problem)}" + (f" at {where}" if where else "")
