"""What a training begins with: the data in the student's form, the model, the optimizer, the schedule."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from grader.protocol.replies import Problem, TrainingPlan, WhyRebuilt
from grader.protocol.requests import Train
from grader.worker.fault import SeenError, StudentFault, students_code
from grader.worker.images import GradedImages
from grader.worker.program import StudentModule, seed_all
from grader.worker.recipe import Data, Settings, built_model, built_optimizer, settings

VALIDATION_SHARE = 0.1  # of the training images, where the student's loop decides by what it validates on
GLANCE_SHARE = 0.02  # where it does not: what it measures between epochs is looked at by nobody


@dataclass(frozen=True)
class Prepared:
    """What a training begins with.

    Attributes:
        validation: What the student's code looks at between epochs.
        scheduler: None where there is none.
    """

    device: torch.device
    settings: Settings
    data: Data
    validation: GradedImages
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any | None

    def plan(self, why_rebuilt: WhyRebuilt = "", problem: Problem | None = None) -> TrainingPlan:
        """What is about to be trained."""
        device = self.device
        return TrainingPlan(
            epochs=self.settings.epochs,
            batch_size=self.settings.batch_size,
            optimizer=type(self.optimizer).__name__,
            scheduler=type(self.scheduler).__name__ if self.scheduler is not None else "",
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            assumed=self.settings.assumed,
            rebuilt=why_rebuilt != "",
            why_rebuilt=why_rebuilt,
            problem=problem,
        )


def prepared(
    student: StudentModule, request: Train, device: torch.device, *, validates: bool = False
) -> Prepared:
    """Execute the recipe up to the loop over epochs.

    Args:
        device: The student's.
        validates: Keep a tenth of the training images for the student's own validation; otherwise what the
            student looks at between epochs are a few of the training images. Hidden ones it never sees.

    Raises:
        RecipeError: The source does not say how.
        StudentFault: The student's code raised.
    """
    seed_all(request.seed, device.type)
    chosen = settings(student, device)
    data, validation = _data(request, chosen, validates=validates)
    seed_all(request.seed, device.type)  # the worker that measures builds the same model
    model = built_model(student, data, device)
    optimizer, scheduler = built_optimizer(student)
    if "train_epoch" not in student.namespace:
        raise StudentFault(SeenError("no_train_epoch", "`train_epoch` is not defined"))
    return Prepared(device, chosen, data, validation, model, optimizer, scheduler)


def _data(request: Train, chosen: Settings, *, validates: bool) -> tuple[Data, GradedImages]:
    """The student's loaders, and the data set of the second."""
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
    train_loader: DataLoader[Any] = DataLoader(train, batch_size=size, shuffle=True, generator=shuffling)
    return Data(train_loader, DataLoader(validation, batch_size=size)), validation


def _share_of_each_class(share: float, labels: Any, seed: int) -> Any:
    """The indices of a share of each class's images, at least one, int64 (n,), in order."""
    random = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        chosen.append(random.choice(own, max(round(share * len(own)), 1), replace=False))
    return np.sort(np.concatenate(chosen))
