"""The recipe, executed in the student's module: settings, transforms, data by role, model.

Where the source gives no batch size or transform the handout's counts; a collate function that does not fit
gives way to PyTorch's. Each is noted as assumed. Without a model it raises a gap, which costs nothing by
itself. `grader.analysis.recipe` reads the source, and `script_run` executes the training.

Tests: tests/worker/test_worker_recipe.py, tests/worker/test_worker_training.py
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from grader.domain.program import Program
from grader.protocol.plain_values import ModelMade
from grader.protocol.recipe_gaps import Gap
from grader.protocol.replies import HANDED_OUT_BATCH_SIZE
from grader.worker.device import bind_devices
from grader.worker.fault import RecipeError, SeenError, StudentFault, students_code
from grader.worker.images import GradedImages
from grader.worker.outputs import same_random_numbers
from grader.worker.program import StudentModule, seed_all
from grader.worker.transforms import Transform, handed_out_transform, of_pictures, picture_of

MAX_EPOCHS = 100_000
LARGEST_GRAY = 28  # pixels: where a source does not say how large its gray images become
CPU = torch.device("cpu")

Assumed = Literal["batch_size", "transform", "collate"]
Collate = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Settings:
    """What the source says before there is any data.

    Attributes:
        collate: What the training loader makes batches with; None: PyTorch's own.
        assumed: What the source does not say.
    """

    batch_size: int
    train_transform: Transform
    test_transform: Transform
    collate: Collate | None
    assumed: tuple[Assumed, ...]


@dataclass(frozen=True)
class Data:
    """What the source finds under its names for loaders and data sets.

    The test loader that a student's function may look at holds training images, never the hidden ones.
    """

    train_loader: DataLoader[Any]
    test_loader: DataLoader[Any]

    def by_role(self, class_names: tuple[str, ...]) -> dict[str, Any]:
        """The values of the roles that come from data."""
        return {
            "train_loader": self.train_loader,
            "test_loader": self.test_loader,
            "train_dataset": self.train_loader.dataset,
            "test_dataset": self.test_loader.dataset,
            "class_names": list(class_names),
            "num_classes": len(class_names),
        }


def settings(student: StudentModule, device: torch.device, image: Any) -> Settings:
    """Execute what the recipe depends on, and read the settings; `device` becomes the student's.

    Args:
        image: One of those that it is trained on, uint8 (height, width[, 3]).

    Raises:
        RecipeError: The source says something unusable.
        StudentFault: The student's code raised.
    """
    recipe = student.program.recipe
    assumed: list[Assumed] = []
    try:
        _run_statements(student, device)
    except StudentFault as fault:  # lifted out of what stands around them, which may be why
        raise RecipeError("settings_raised", fault.error) from fault
    batch_size = HANDED_OUT_BATCH_SIZE
    if recipe.batch_size is not None:
        batch_size = _whole(student, recipe.batch_size, "unusable_batch_size")
    else:
        assumed.append("batch_size")
    train, test = transforms(student, assumed, image)
    collate = _collate(student, train, image, assumed)
    return Settings(batch_size, train, test, collate, tuple(assumed))


def transforms(student: StudentModule, assumed: list[Assumed], image: Any) -> tuple[Transform, Transform]:
    """The transforms of training and of test images; where there is none, the handed-out one, and a note.

    Args:
        image: One of them, uint8 (height, width[, 3]).
    """
    recipe = student.program.recipe
    train, test = recipe.train_transform, recipe.test_transform
    if train is None and test is None:
        handed_out = handed_out_transform(*_input_size(student.program, image))
        assumed.append("transform")
        return handed_out, handed_out
    with same_random_numbers():
        train_transform = of_pictures(student.evaluated(train or test or ""), image)
        test_transform = of_pictures(student.evaluated(test), image) if test else train_transform
    return train_transform, test_transform


def _collate(
    student: StudentModule, transform: Transform, image: Any, assumed: list[Assumed]
) -> Collate | None:
    """What makes batches of training images, if it gives batches of the shape that PyTorch's own gives.

    What a data set of the student's own hands it may be something else than images and labels.
    """
    expression = student.program.recipe.collate
    if expression is None:
        return None
    with same_random_numbers():
        try:
            made: Collate = student.evaluated(expression)
            with students_code():
                items = [(transform(picture_of(image)), label) for label in (0, 0)]
                images, labels = made(items)
                fits = len(labels) == len(items) and images.shape == (len(items), *items[0][0].shape)
        except StudentFault:
            fits = False
    if fits:
        return made
    assumed.append("collate")
    return None


def bind(student: StudentModule, values: dict[str, Any]) -> None:
    """Put values under the names that the source uses for their roles."""
    for name, role in (student.program.roles or {}).items():
        if role in values:
            student.namespace[name] = values[role]


def built_model(student: StudentModule, data: Data, device: torch.device) -> nn.Module:
    """The student's model on the device, bound to its name.

    Raises:
        RecipeError: The source has none.
        StudentFault: The student's code raised, or made something else than a module.
    """
    recipe = student.program.recipe
    bind(student, data.by_role(student.class_names))
    student.run(recipe.after_data)
    expression = _required(recipe.model, "no_model")
    model = student.evaluated(expression)
    if not isinstance(model, nn.Module):
        made = f"`{expression[:80]}` made a {type(model).__name__}, not an nn.Module"
        raise StudentFault(SeenError("no_module", made))
    with students_code():
        model = model.to(device)
    student.namespace[recipe.model_name] = model
    return model


def configured_model(
    student: StudentModule,
    labels: Sequence[int] | None = None,
    device: torch.device = CPU,
    *,
    seed: int | None = None,
    made: ModelMade | None = None,
) -> nn.Module:
    """The student's model, for looking at it: with blank images in the place of the data.

    Args:
        labels: Of the blank images: the source may count them. None: some of each class.
        device: The student's.
        seed: Of the initialization; None leaves the random numbers as they are.
        made: What the model is made with; None: what the source says.

    Raises:
        RecipeError: The source has none.
        StudentFault: The student's code raised.
    """
    _run_statements(student, device)
    if seed is not None:
        seed_all(seed, device.type)
    if labels is None:
        labels = list(range(max(len(student.class_names), 1))) * 8
    blank = np.zeros((len(labels), 8, 8), dtype=np.uint8)
    images = GradedImages(blank, labels, student.class_names, handed_out_transform(8, 1))
    loader: DataLoader[Any] = DataLoader(images, batch_size=HANDED_OUT_BATCH_SIZE)
    if made is not None:
        with students_code():
            kind = student.namespace[student.program.script.model_class]
            model: nn.Module = kind(*made.args, **made.kwargs).to(device)
        return model
    return built_model(student, Data(loader, loader), device)


def _run_statements(student: StudentModule, device: torch.device) -> None:
    student.run(student.program.recipe.statements)
    bind_devices(student.namespace, device)


def _input_size(program: Program, image: Any) -> tuple[int, int]:
    """(image size, channels) as the source configures them, else as the images are: gray ones small."""
    values = {value.name: value.value for value in program.tuned}
    is_color = np.ndim(image) == 3
    size = re.match(r"\d+", values.get("image_size", ""))
    channels = values.get("channels", "")
    side = len(image) if is_color else min(len(image), LARGEST_GRAY)
    return int(size.group()) if size else side, int(channels) if channels.isdigit() else 3 if is_color else 1


def _required(expression: str | None, gap: Gap) -> str:
    if expression is None:
        raise RecipeError(gap)
    return expression


def _whole(student: StudentModule, expression: str, gap: Gap) -> int:
    value = student.evaluated(expression)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_EPOCHS:
        raise RecipeError(gap)
    return value
