"""A training's set-up in the student's module: settings, transforms, data by role, model.

If the source gives no batch size or transform, the handout's is used; if its collate function does not fit,
PyTorch's is used. Each is noted as assumed. Without a model it raises a gap, which costs nothing by itself.
It decides which training images the student's validation sees: if the loop decides by them, a tenth that is
kept apart, else a few that are also trained on. Hidden images are never here. `grader.analysis` reads the
source, and `script_run` executes the training.

Tests: tests/worker/test_multiply_adds.py, tests/worker/test_worker_recipe.py,
tests/worker/test_worker_training.py
"""

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from grader.domain.analyzed_program import Program
from grader.protocol.error_kinds import Gap
from grader.protocol.replies import HANDED_OUT_BATCH_SIZE, Trained
from grader.protocol.requests import Train, glimpse_of
from grader.protocol.trees import ModelMade
from grader.worker.graded_images import GradedImages
from grader.worker.made_loaders import MadeLoaders, made_loaders
from grader.worker.model_outputs import answers, array, module_tree, same_random_numbers, state
from grader.worker.student_environment import bind_devices
from grader.worker.student_faults import RecipeError, SeenError, StudentFault, students_code
from grader.worker.student_module import StudentModule, seed_all
from grader.worker.transforms import Transform, handed_out_transform, of_pictures, picture_of

MAX_EPOCHS = 100_000
LARGEST_GRAY = 28  # pixels: if a source does not say how large its gray images become
CPU = torch.device("cpu")

Assumed = Literal["batch_size", "transform", "collate"]
Collate = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Settings:
    """The settings that the source gives before there is any data.

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


def settings(student: StudentModule, device: torch.device, images: Any) -> Settings:
    """Execute what the recipe depends on, and read the settings; `device` becomes the student's.

    Args:
        images: Those that it is trained on, uint8 (n, height, width[, 3]).

    Raises:
        RecipeError: The source says something unusable.
        StudentFault: The student's code raised.
    """
    recipe = student.program.recipe
    assumed: list[Assumed] = []
    raised = _run_statements(student, device)
    made = made_loaders(student, glimpse_of(images))
    batch_size = made.batch_size
    try:
        if batch_size is None and recipe.batch_size is not None:
            batch_size = _whole(student, recipe.batch_size, "unusable_batch_size")
        elif batch_size is None:
            batch_size = HANDED_OUT_BATCH_SIZE
            assumed.append("batch_size")
        train, test = transforms(student, made, assumed, images[0])
    except StudentFault as fault:
        if raised is None:
            raise
        raise RecipeError("settings_raised", raised.error) from fault
    collate = _collate(student, train, images[0], assumed)
    return Settings(batch_size, train, test, collate, tuple(assumed))


def transforms(
    student: StudentModule, made: MadeLoaders, assumed: list[Assumed], image: Any
) -> tuple[Transform, Transform]:
    """The transforms of training and of test images; if there is none, the handed-out one, and a note.

    Args:
        made: What is known of the student's loaders. It counts before what was read from the source.
        image: One of them, uint8 (height, width[, 3]).
    """
    recipe = student.program.recipe
    with same_random_numbers():
        train = made.train_transform or _evaluated(student, recipe.train_transform, made)
        test = made.test_transform or _evaluated(student, recipe.test_transform, made)
        if train is None and test is None:
            train = handed_out_transform(*_input_size(student.program, image))
            assumed.append("transform")
            return train, train
        channels = _channels(student.program)
        train_transform = of_pictures(train or test, image, channels)
        test_transform = of_pictures(test, image, channels) if test is not None else train_transform
    return train_transform, test_transform


def _evaluated(student: StudentModule, expression: str | None, made: MadeLoaders) -> Any:
    """What an expression of the source gives; None if there is none, or if it fails beside a known transform.

    Raises:
        StudentFault: It raised, and no transform is known.
    """
    if expression is None:
        return None
    try:
        return student.evaluated(expression)
    except StudentFault:
        if made.train_transform is None and made.test_transform is None:
            raise
        return None


def _collate(
    student: StudentModule, transform: Transform, image: Any, assumed: list[Assumed]
) -> Collate | None:
    """What makes batches of training images, if it gives batches of the shape that PyTorch's own gives.

    A student's own data set may hand it something other than images and labels.
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
    """Bind values to the names that the source uses for their roles."""
    for name, role in (student.program.roles or {}).items():
        if role in values:
            student.namespace[name] = values[role]


def built_model(student: StudentModule, data: Data, device: torch.device) -> nn.Module:
    """The student's model on the device, bound to its name.

    Raises:
        RecipeError: The source has none.
        StudentFault: The student's code raised, or made something other than a module.
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
    """The student's model, for inspection: with blank images in place of the data.

    Args:
        labels: Of the blank images, as the source may count them. None: some of each class.
        device: The student's.
        seed: Of the initialization; None leaves the random numbers as they are.
        made: What the model is made with; None: as the source says.

    Raises:
        RecipeError: The source has none.
        StudentFault: The student's code raised.
    """
    raised = _run_statements(student, device)
    if seed is not None:
        seed_all(seed, device.type)
    if labels is None:
        labels = list(range(max(len(student.class_names), 1))) * 8
    blank = np.zeros((len(labels), 8, 8), dtype=np.uint8)
    images = GradedImages(blank, labels, student.class_names, handed_out_transform(8, 1))
    loader: DataLoader[Any] = DataLoader(images, batch_size=HANDED_OUT_BATCH_SIZE)
    try:
        if made is None:
            return built_model(student, Data(loader, loader), device)
        with students_code():
            kind = student.namespace[student.program.script.model_class]
            model: nn.Module = kind(*made.args, **made.kwargs).to(device)
    except StudentFault as fault:
        raise raised or fault from fault
    return model


def _run_statements(student: StudentModule, device: torch.device) -> StudentFault | None:
    """Execute what the recipe depends on, as far as it can be.

    The statements are lifted out of their context, which may be why one raises. It matters only to what needs
    the names that it binds, which are missing then.

    Returns:
        What the first that raised has raised; None if all ran.
    """
    first: StudentFault | None = None
    for statement in student.program.recipe.statements:
        try:
            student.run([statement])
        except StudentFault as fault:
            first = first or fault
            for name in statement.binds:
                student.namespace.pop(name, None)
    bind_devices(student.namespace, device)
    return first


def _input_size(program: Program, image: Any) -> tuple[int, int]:
    """(image size, channels) as the source configures them, else those of the images; gray ones are small."""
    values = {value.name: value.value for value in program.tuned}
    is_color = np.ndim(image) == 3
    size = re.match(r"\d+", values.get("image_size", ""))
    side = len(image) if is_color else min(len(image), LARGEST_GRAY)
    return int(size.group()) if size else side, _channels(program) or (3 if is_color else 1)


def _channels(program: Program) -> int | None:
    """How many channels the model takes, if the source says it."""
    text = next((value.value for value in program.tuned if value.name == "channels"), "")
    return int(text) if text.isdigit() else None


def _required(expression: str | None, gap: Gap) -> str:
    if expression is None:
        raise RecipeError(gap)
    return expression


def _whole(student: StudentModule, expression: str, gap: Gap) -> int:
    value = student.evaluated(expression)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_EPOCHS:
        raise RecipeError(gap)
    return value


# --- preparation -----------------------------------------------------------------------------------------


VALIDATION_SHARE = 0.1  # of the training images, if the student's loop decides by its validation
PROBES = 32  # images for which a trained model answers here too
GLANCE_SHARE = 0.02  # if it does not: nobody looks at what it measures between epochs


@dataclass(frozen=True)
class Prepared:
    """What a training begins with.

    Attributes:
        validation: What the student's code measures on between epochs.
        training: What it trains on.
        apart: (images, labels) that are kept out of the training while decisions depend on them; None: none.
        sized: The model's size is wanted at the end.
    """

    device: torch.device
    settings: Settings
    data: Data
    validation: GradedImages
    training: GradedImages
    apart: tuple[Any, Any] | None = None
    sized: bool = False

    def all_is_decided(self) -> None:
        """From now on, also train on the images that were kept for decisions.

        Raises:
            StudentFault: The student's transform raised.
        """
        if self.apart is not None:
            with students_code():
                self.training.extend(*self.apart)


def prepared(student: StudentModule, request: Train, device: torch.device) -> Prepared:
    """Execute what the data depend on, and make them.

    If the student's code decides by what it measures, a tenth of the training images is kept for that, as
    long as it does; otherwise it measures on a few of the training images. It never sees hidden ones.

    Args:
        device: The student's.

    Raises:
        RecipeError: The source says something unusable.
        StudentFault: The student's code raised.
    """
    seed_all(request.seed, device.type)
    if request.sized:  # a rehearsal: compiling would take longer than all its epochs
        torch.compiler.set_stance("force_eager")
    chosen = settings(student, device, request.arrays["train_images"])
    return _prepared(request, chosen, device, validates=student.program.script.validates)


def _prepared(request: Train, chosen: Settings, device: torch.device, *, validates: bool) -> Prepared:
    """The student's loaders, and what they load from."""
    arrays, classes, size = request.arrays, request.class_names, chosen.batch_size
    images, labels = arrays["train_images"], arrays["train_labels"]
    kept = np.arange(len(labels))
    # images that the student's validation sees
    validated = _share_of_each_class(VALIDATION_SHARE if validates else GLANCE_SHARE, labels, request.seed)
    if validates:
        kept = np.setdiff1d(kept, validated)
    with students_code():  # deterministic transforms, which are the student's, are applied here
        train = GradedImages(images[kept], labels[kept], classes, chosen.train_transform)
        validation = GradedImages(images[validated], labels[validated], classes, chosen.test_transform)
    shuffling = torch.Generator().manual_seed(request.seed)
    train_loader: DataLoader[Any] = DataLoader(
        train, batch_size=size, shuffle=True, generator=shuffling, collate_fn=chosen.collate
    )
    data = Data(train_loader, DataLoader(validation, batch_size=size))
    apart = (images[validated], labels[validated]) if validates else None
    return Prepared(device, chosen, data, validation, train, apart, request.sized)


def _share_of_each_class(share: float, labels: Any, seed: int) -> Any:
    """The indices of a share of each class's images, at least one, int64 (n,), in order."""
    random = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen.append(random.choice(members, max(round(share * len(members)), 1), replace=False))
    return np.sort(np.concatenate(chosen))


def ended(epochs: int, other_models: int, model: nn.Module, ready: Prepared) -> Trained:
    """The end of a training: the weights, and what the model answers with them for the probe images.

    Raises:
        StudentFault: Reading the weights raised.
    """
    arrays = state(model)
    # a student's code may leave its model on the CPU
    device = next((parameter.device for parameter in model.parameters()), ready.device)
    # these answers are compared with those of its weights elsewhere; no points depend on it
    with contextlib.suppress(StudentFault), same_random_numbers():
        with students_code():
            probe = ready.validation.batch(0, min(PROBES, len(ready.validation)))
        probe_logits = answers(model, [probe], device, len(ready.validation.classes))
        arrays |= {"probe": array(probe.float()), "probe_logits": probe_logits}
    if not ready.sized:
        return Trained(epochs, other_models, module_tree(model), arrays=arrays)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    with students_code():
        two_images = ready.validation.batch(0, min(2, len(ready.validation))).to(device)
    counted = multiply_adds(model, two_images)
    return Trained(epochs, other_models, module_tree(model), parameters, counted, arrays=arrays)


def multiply_adds(model: nn.Module, images: torch.Tensor) -> int:
    """The multiply-adds of one image's forward pass; -1 if they cannot be counted.

    A model need not answer for a single image, as a batch normalization in training mode does not.

    Args:
        images: One or two, (n, channels, height, width).
    """
    from torch.utils.flop_counter import FlopCounterMode  # takes a moment, and is needed once

    for count in range(1, len(images) + 1):
        try:
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                model(images[:count])
        except Exception:  # a model may do anything that the counter does not know
            continue
        return int(counter.get_total_flops()) // (2 * count)  # a multiplication and an addition are two
    return -1


def learning_rate(optimizer: torch.optim.Optimizer) -> float:
    """The learning rate of the first parameter group, which must be finite: a frame cannot carry NaN.

    Raises:
        StudentFault: It is not a finite number.
    """
    with students_code():
        rate = float(optimizer.param_groups[0]["lr"])
        if not math.isfinite(rate):
            raise SeenError("no_learning_rate", f"the learning rate became {rate}")
        return rate
