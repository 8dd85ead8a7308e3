"""The training script, executed on the grader's images.

It replaces the student's data by the grader's, and keeps in memory what is saved. Saved weights belong to the
model with these numbers, else to the last one that they fit; if they fit none, a person decides. What is
trained is watched by `grader.worker.script_watch`; `grader.training` measures what the model is worth.

Tests: tests/training/test_replay.py, tests/training/test_cheats.py
"""

import contextlib
import copy
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from grader.domain.analyzed_program import DATA_NAME, EPOCHS_NAME, NOTHING_NAME, Script
from grader.domain.split_sides import split_side
from grader.protocol.trees import OtherValues
from grader.worker.measuring_loader import MeasuringLoader
from grader.worker.model_outputs import same_random_numbers
from grader.worker.rigged_objects import WatchedLoader
from grader.worker.saved_weights import Saved, states_in, weights_in_memory
from grader.worker.script_watch import (
    Epochs,
    ScriptWatch,
    Tell,
    unwrapped_model,
)
from grader.worker.student_environment import Inert, NothingThereError, bind_devices
from grader.worker.student_faults import RecipeError, StudentFault, students_code
from grader.worker.student_module import StudentModule, quiet
from grader.worker.training_passes import LossWatch
from grader.worker.training_setup import Data, Prepared, ended
from grader.worker.written_files import written_apart

COMPARED = 64  # images


class GradersData:
    """The loaders and data sets that replace the student's: `data["train_loader"]`."""

    def __init__(self, by_role: dict[str, Any]) -> None:
        self._by_role = by_role

    def __getitem__(self, role: str) -> Any:
        side, _, kind = role.partition("_")
        if kind == "pictures":  # seldom asked for
            return self._by_role[f"{side}_dataset"].pictures()
        return self._by_role[role]

    def of(self, role: str, *texts: object, shuffle: object = None) -> Any:
        """The loader or data set of a role, or of the side that a text such as `"val"` names.

        Args:
            shuffle: Whether the student's loader shuffles; None: that is not known.
        """
        sides = [split_side(str(text)) for text in texts if isinstance(text, str | os.PathLike)]
        if isinstance(shuffle, bool):
            sides.append("train" if shuffle else "test")
        side = next(filter(None, sides), role.partition("_")[0])
        return self[f"{side}_{role.partition('_')[2]}"]

    def maker(self, role: str) -> Callable[..., Any]:
        """What makes the data set of a role, as `partial(ImageFolder, "data/train")` does."""
        return lambda *texts, **_: self.of(role, *texts)


def run_script(student: StudentModule, ready: Prepared, tell: Tell, other: OtherValues | None = None) -> None:
    """Execute the script.

    Args:
        tell: Called with the plan, each epoch, and the end.
        other: Values in place of the script's own; None: it is executed as it is.

    Raises:
        RecipeError: It could not go on, and not because of a graded part; or it trained nothing.
        StudentFault: A graded part raised.
    """
    script = student.program.script
    losses = LossWatch(student.namespace.get(script.trainer))
    watch = ScriptWatch(student, ready, losses, tell, reports_arguments=other is not None)
    losses.returned = watch.trainer_returned
    saved: dict[str, Saved] = {}
    data = GradersData(_watched(ready, watch).by_role(student.class_names))
    values: dict[str, Any] = {
        DATA_NAME: data,
        NOTHING_NAME: Inert(NOTHING_NAME),
        EPOCHS_NAME: watch,
    }
    if script.trainer in student.namespace:
        values[script.trainer] = losses.watched()
    if other is not None and other.function in student.namespace:
        called = values.get(other.function, student.namespace[other.function])
        values[other.function] = _called_with(called, other.given)
    for name, role in script.data.items():
        student.namespace[name] = data[role]
    hook = register_optimizer_step_pre_hook(watch.stepping)
    try:
        with (
            student.replaced(values),
            weights_in_memory(saved),
            written_apart(),
            _constructions_reported(student.namespace.get(script.model_class), watch, other),
            quiet(),
        ):
            _run(student, script, watch, ready)
            model = _final(student, script, watch, saved)
    finally:
        hook.remove()
    epochs = _epochs_of(watch, model)
    watch.tell_all(epochs)
    trained = ended(len(epochs.whole), watch.others(epochs), model, ready)
    tell(replace(trained, fed_otherwise=_fed_otherwise(watch, epochs, ready)))


def _fed_otherwise(watch: ScriptWatch, epochs: Epochs, ready: Prepared) -> bool:
    """Whether the student's code changed the images before the model that counts saw them."""
    count = len(ready.training)
    with contextlib.suppress(StudentFault), same_random_numbers(), students_code():
        chosen = ready.training.items(range(0, count, max(count // COMPARED, 1)))
        images = torch.stack([torch.as_tensor(value) for value, _ in chosen])
        return watch.fed_otherwise(epochs, images)
    return False


def _run(student: StudentModule, script: Script, watch: ScriptWatch, ready: Prepared) -> None:
    try:
        for number, statement in enumerate(script.statements):
            if number and number == script.deciding:
                ready.all_is_decided()
            student.run([statement])
            bind_devices(student.namespace, ready.device)
    except StudentFault as fault:
        is_students = watch.losses.running or _is_in_graded_part(fault.error, student)
        if is_students and not isinstance(fault.error, NothingThereError):
            raise
        raise RecipeError("loop_raised", fault.error) from fault
    watch.close()
    if not watch.models:
        raise RecipeError("no_step")


def _is_in_graded_part(error: BaseException, student: StudentModule) -> bool:
    """Whether a graded part was running when it was raised."""
    codes = set()
    for name in student.program.defined or {}:
        part = student.namespace.get(name)
        for function in [part, *vars(part).values()] if isinstance(part, type) else [part]:
            code = getattr(function, "__code__", None)
            codes |= {code} if code is not None else set()
    trace = BaseException.__dict__["__traceback__"].__get__(error)
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _watched(ready: Prepared, watch: ScriptWatch) -> Data:
    loader = ready.data.train_loader
    watched = WatchedLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        shuffle=True,
        generator=loader.generator,
        collate_fn=loader.collate_fn,
    )
    watched.ended = watch.ended  # type: ignore[method-assign]
    watch.loader = watched
    return Data(watched, MeasuringLoader(ready.data.test_loader, watched, lambda: watch.steps_taken))


def _final(student: StudentModule, script: Script, watch: ScriptWatch, saved: dict[str, Saved]) -> nn.Module:
    """The model that counts, with its weights as the script leaves or saves them.

    Raises:
        StudentFault: The student's code raised.
        RecipeError: The saved weights are those of something else.
    """
    last = list(watch.models.values())[-1].model
    if script.final:
        final = unwrapped_model(student.evaluated(script.final))
        return final if isinstance(final, nn.Module) else last
    others = False  # a script may save further models that are not of the graded class
    named = script.saved_as.lower()
    latest_first = list(reversed(saved.items()))
    latest_first.sort(key=lambda item: named not in Path(item[0]).name.lower())
    for _, kept in latest_first:
        for weights in states_in(kept.value):
            epochs = watch.owner(kept.storages, weights)
            if epochs is not None:
                with students_code():
                    model = copy.deepcopy(epochs.model)
                    model.load_state_dict(weights)
                watch.models[id(model)] = epochs
                return model
            others = True
    if others:
        raise RecipeError("other_model")
    return last


def _epochs_of(watch: ScriptWatch, model: nn.Module) -> Epochs:
    """The epochs of a model, or of the one that it was copied or averaged from."""
    epochs = watch.models.get(id(model))
    if epochs is not None:
        return epochs
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    for other in reversed(list(watch.models.values())):
        if {name: value.shape for name, value in other.model.state_dict().items()} == shapes:
            return other
    return list(watch.models.values())[-1]


def _with_other(function: Any, values: Mapping[str, Any], args: Any, kwargs: Any) -> inspect.BoundArguments:
    """The arguments of a call, with other values for those that the function has."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.arguments.update({name: value for name, value in values.items() if name in signature.parameters})
    return bound


def _called_with(function: Any, values: Mapping[str, Any]) -> Any:
    """A function that is called with other values for some of its arguments."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        bound = _with_other(function, values, args, kwargs)
        return function(*bound.args, **bound.kwargs)

    return called


@contextlib.contextmanager
def _constructions_reported(kind: Any, watch: ScriptWatch, other: OtherValues | None) -> Iterator[None]:
    """Report each model of the graded class with what it is made with."""
    if not isinstance(kind, type):
        yield
        return
    real: Any = kind.__init__  # type: ignore[misc]

    @functools.wraps(real)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is kind:
            if other is not None:
                bound = _with_other(real, other.model, (self, *args), kwargs)
                args, kwargs = bound.args[1:], bound.kwargs
            watch.constructed(self, args, kwargs)
        real(self, *args, **kwargs)

    kind.__init__ = made  # type: ignore[misc]
    try:
        yield
    finally:
        kind.__init__ = real  # type: ignore[misc]
