"""Training data in the student's form, and what a training begins and ends with.

It decides which training images the student's validation sees: a tenth kept apart where the loop decides by
them, else a few that are trained on too. Hidden images are never here. `grader.analysis.script.deciding`
reads off whether the loop decides; `script_run` watches what is trained.

Tests: tests/worker/test_worker_training.py, tests/worker/test_multiply_adds.py
"""

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from grader.protocol.replies import Trained
from grader.protocol.requests import Train
from grader.worker.fault import SeenError, StudentFault, students_code
from grader.worker.images import GradedImages
from grader.worker.outputs import answers, array, module_tree, same_random_numbers, state
from grader.worker.program import StudentModule, seed_all
from grader.worker.recipe import Data, Settings, settings

VALIDATION_SHARE = 0.1  # of the training images, where the student's loop decides by what it validates on
PROBES = 32  # images for which a trained model answers here too
GLANCE_SHARE = 0.02  # where it does not: what it measures between epochs is looked at by nobody


@dataclass(frozen=True)
class Prepared:
    """What a training begins with.

    Attributes:
        validation: What the student's code looks at between epochs.
        training: What it trains on.
        apart: (images, labels) that are kept out of it while something is decided by them; None: none are.
        sized: The model's size is wanted in the end.
    """

    device: torch.device
    settings: Settings
    data: Data
    validation: GradedImages
    training: GradedImages
    apart: tuple[Any, Any] | None = None
    sized: bool = False

    def all_is_decided(self) -> None:
        """From now on the images that were kept for decisions are trained on, too.

        Raises:
            StudentFault: The student's transform raised.
        """
        if self.apart is not None:
            with students_code():
                self.training.extend(*self.apart)


def prepared(student: StudentModule, request: Train, device: torch.device) -> Prepared:
    """Execute what the data depend on, and make them.

    Where the student's code decides by what it measures, a tenth of the training images is kept for that, as
    long as it does; otherwise what it looks at are a few of the training images. Hidden ones it never sees.

    Args:
        device: The student's.

    Raises:
        RecipeError: The source says something unusable.
        StudentFault: The student's code raised.
    """
    seed_all(request.seed, device.type)
    if request.sized:  # a trial of a few images: compiling for it would take longer than all its epochs
        torch.compiler.set_stance("force_eager")
    chosen = settings(student, device, request.arrays["train_images"][0])
    return _prepared(request, chosen, device, validates=student.program.script.validates)


def _prepared(request: Train, chosen: Settings, device: torch.device, *, validates: bool) -> Prepared:
    """The student's loaders, and what they load from."""
    arrays, classes, size = request.arrays, request.class_names, chosen.batch_size
    images, labels = arrays["train_images"], arrays["train_labels"]
    kept = np.arange(len(labels))
    # seen by the student's validation
    seen = _share_of_each_class(VALIDATION_SHARE if validates else GLANCE_SHARE, labels, request.seed)
    if validates:
        kept = np.setdiff1d(kept, seen)
    with students_code():  # deterministic transforms, which are the student's, are applied here
        train = GradedImages(images[kept], labels[kept], classes, chosen.train_transform)
        validation = GradedImages(images[seen], labels[seen], classes, chosen.test_transform)
    shuffling = torch.Generator().manual_seed(request.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train, batch_size=size, shuffle=True, generator=shuffling, collate_fn=chosen.collate
    )
    data = Data(train_loader, DataLoader(validation, batch_size=size))
    apart = (images[seen], labels[seen]) if validates else None
    return Prepared(device, chosen, data, validation, train, apart, request.sized)


def _share_of_each_class(share: float, labels: Any, seed: int) -> Any:
    """The indices of a share of each class's images, at least one, int64 (n,), in order."""
    random = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        chosen.append(random.choice(own, max(round(share * len(own)), 1), replace=False))
    return np.sort(np.concatenate(chosen))


def ended(epochs: int, other_models: int, model: nn.Module, ready: Prepared) -> Trained:
    """The end of a training: the weights, and what the model answers with them for the probe images.

    Raises:
        StudentFault: Reading the weights raised.
    """
    arrays = state(model)
    # what it answers is compared with what its weights answer elsewhere: nobody's points hang on it
    with contextlib.suppress(StudentFault), same_random_numbers():
        with students_code():
            probe = ready.validation.batch(0, min(PROBES, len(ready.validation)))
        told = answers(model, [probe], ready.device, len(ready.validation.classes))
        arrays |= {"probe": array(probe.float()), "probe_logits": told}
    if not ready.sized:
        return Trained(epochs, other_models, module_tree(model), arrays=arrays)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    with students_code():
        image = ready.validation.batch(0, 1).to(ready.device)
    counted = multiply_adds(model, image)
    return Trained(epochs, other_models, module_tree(model), parameters, counted, arrays)


def multiply_adds(model: nn.Module, images: torch.Tensor) -> int:
    """The multiply-adds of one image's way through a model; -1 where they cannot be counted.

    Args:
        images: (1, channels, height, width).
    """
    from torch.utils.flop_counter import FlopCounterMode  # takes a moment, and is needed once

    try:
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(images)
    except Exception:  # whatever a model does that the counter does not know
        return -1
    return int(counter.get_total_flops()) // 2  # it counts a multiplication and an addition as two


def learning_rate(optimizer: torch.optim.Optimizer) -> float:
    """That of the first parameter group; a frame cannot carry one that is not a number any more.

    Raises:
        StudentFault: It is none.
    """
    with students_code():
        rate = float(optimizer.param_groups[0]["lr"])
        if not math.isfinite(rate):
            raise SeenError("no_learning_rate", f"the learning rate became {rate}")
        return rate
