"""The training script, executed on the grader's images and watched from outside.

An epoch is a pass over the training loader in which an optimizer stepped a model. In a loop over epochs that
uses no loader, it is one iteration. After each epoch the model's weights go to the judge; the student's
random numbers are untouched. Saved weights belong to the model with these numbers, else to the last one that
they fit; if they fit none, a person decides. `grader.training` measures what the model is worth.

Tests: tests/training/test_replay.py, tests/training/test_cheats.py
"""

import contextlib
import copy
import functools
import gc
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from grader.domain.analyzed_program import DATA_NAME, EPOCHS_NAME, NOTHING_NAME, Script
from grader.protocol.replies import EpochDone, Trained, TrainingPlan
from grader.protocol.requests import STATE
from grader.protocol.trees import ModelMade, OtherValues
from grader.worker.model_outputs import array, module_tree, same_random_numbers, state, unwrapped_names
from grader.worker.rigged_objects import WatchedLoader
from grader.worker.student_environment import Inert, bind_devices
from grader.worker.student_faults import RecipeError, StudentFault, student_places, students_code
from grader.worker.student_module import StudentModule, quiet
from grader.worker.training_passes import LossWatch, schedule_of
from grader.worker.training_setup import Data, Prepared, ended, learning_rate

Tell = Callable[[TrainingPlan | EpochDone | Trained], None]
SIDE = re.compile(r"(?P<train>train|trn)|test|val|eval|dev", re.IGNORECASE)
MOST_KEPT = 200  # epochs of models that may turn out not to count


class GradersData:
    """The loaders and data sets that replace the student's: `data["train_loader"]`."""

    def __init__(self, by_role: dict[str, Any]) -> None:
        self._by_role = by_role

    def __getitem__(self, role: str) -> Any:
        return self._by_role[role]

    def of(self, role: str, *texts: object) -> Any:
        """The loader or data set of a role, or of the side that a text such as `"val"` names."""
        for text in texts:
            side = SIDE.search(str(text)) if isinstance(text, str | os.PathLike) else None
            if side is not None:
                return self._by_role[f"{'train' if side['train'] else 'test'}_{role.partition('_')[2]}"]
        return self._by_role[role]


@dataclass
class _Loop:
    """A loop over epochs while it runs."""

    planned: int | None


@dataclass
class _Epochs:
    """The epochs of one model.

    Attributes:
        reported: What was reported, or will be, of each.
        before: The epochs of the model whose weights it began with, if that is another one.
    """

    model: nn.Module
    reported: list[EpochDone] = field(default_factory=list)
    before: "_Epochs | None" = None

    @property
    def whole(self) -> list[EpochDone]:
        """The epochs of the models before, and its own."""
        return [*(self.before.whole if self.before is not None else ()), *self.reported]

    @property
    def models(self) -> set[int]:
        """`id` of the model, and of the models before."""
        return {id(self)} | (self.before.models if self.before is not None else set())


@dataclass(frozen=True)
class _FirstStep:
    """What the first step of an epoch showed: see EpochDone."""

    loop: int
    called: str
    optimizer: str
    scheduler: str
    learned: int
    rate: float


@dataclass(frozen=True)
class Saved:
    """What the script saved.

    Attributes:
        storages: The addresses of its numbers at that time.
    """

    value: Any
    storages: frozenset[int]


class ScriptWatch:
    """Watches what a script trains.

    Attributes:
        models: Each model that was stepped, with its epochs, in the order of the last step.
        losses: What train_epoch reports.
    """

    def __init__(
        self,
        student: StudentModule,
        ready: Prepared,
        losses: LossWatch,
        tell: Tell,
        *,
        reports_arguments: bool = False,
    ) -> None:
        """Nothing is trained yet.

        Args:
            reports_arguments: Report what a model is made with even if the source says it.
        """
        self._reports_arguments = reports_arguments
        self.models: dict[int, _Epochs] = {}
        self.losses = losses
        self.loader: WatchedLoader
        self._student = student
        self._script = student.program.script
        self._ready = ready
        self._tell = tell
        self._loops: list[_Loop] = []
        self._rate = 0.0
        self._began: _FirstStep | None = None
        self._schedules: dict[tuple[int, int, str], str] = {}  # looking one up takes some 30 ms
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        self._begun: dict[int, _Epochs] = {}  # models that were stepped, and have no epoch yet
        self._limit: int | None = None
        self._others = 0
        self._planned_before = 0
        self._pending: tuple[_Epochs, EpochDone] | None = None
        self._plan: TrainingPlan | None = None
        self._made: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    # --- told by the script -------------------------------------------------------------------------------

    def __call__(self, iterated: Iterable[Any]) -> Iterator[Any]:
        """What a loop over epochs iterates over, with its iterations counted."""
        try:
            planned = len(iterated)  # type: ignore[arg-type]
        except TypeError:
            planned = None
        loop = _Loop(planned)
        self._loops.append(loop)
        try:
            for item in iterated:
                yield item
                # without a pass over the loader, only the loop shows the end of an epoch
                if self._optimizers and not self.loader.passing:
                    self.ended()
        finally:
            if loop in self._loops:
                del self._loops[self._loops.index(loop) :]

    def limit(self, planned: Any) -> Any:
        """The bound that a `while` loop compares the number of an epoch with."""
        if isinstance(planned, int):
            self._limit = planned
        return planned

    def stepping(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer is about to take a step."""
        self._rate = learning_rate(optimizer)
        if self._began is None:
            self._began = self._first_step(optimizer, self._rate)
            self._note_beginning(optimizer)
        self._optimizers[id(optimizer)] = optimizer
        if self._plan is None:
            self._plan = self._planned(optimizer)
            if self._script.single:
                self._tell(self._plan)

    def _first_step(self, optimizer: torch.optim.Optimizer, rate: float) -> "_FirstStep":
        loop, called = self._where()
        with students_code():
            groups = [group["params"] for group in optimizer.param_groups]
            learned = sum(p.numel() for params in groups for p in params if p.grad is not None)
        key = id(optimizer), loop, called
        if key not in self._schedules:
            self._schedules[key] = schedule_of(optimizer)
        return _FirstStep(loop, called, type(optimizer).__name__, self._schedules[key], learned, rate)

    def _note_beginning(self, optimizer: torch.optim.Optimizer) -> None:
        """When a model is stepped for the first time, remember whose weights it begins with."""
        if self._script.single:
            return
        with students_code():
            stepped = {id(p): p for group in optimizer.param_groups for p in group["params"]}
            model = self._model_of(stepped)
        if model is None or id(model) in self.models or id(model) in self._begun:
            return
        with same_random_numbers():
            arrays = state(model)
        earlier = (
            epochs
            for epochs in reversed(list(self.models.values()))
            if any(_same_arrays(arrays, done.arrays) for done in epochs.reported)
        )
        self._begun[id(model)] = _Epochs(model, before=next(earlier, None))

    def _where(self) -> tuple[int, str]:
        """The number of the loop over epochs that is running, and the top-level line that leads to it."""
        loop, within = -1, 0
        places = student_places()
        for depth, place in enumerate(places):
            held = [number for number, candidate in enumerate(self._script.loops) if candidate.holds(place)]
            if held:
                loop, within = held[-1], depth
                break
        return loop, str(places[-1]) if within < len(places) - 1 else ""

    def ended(self) -> None:
        """A pass over the training loader has ended."""
        self.report_pending()
        optimizers, self._optimizers = list(self._optimizers.values()), {}
        began, self._began = self._began, None
        with students_code():
            stepped = {id(p): p for o in optimizers for group in o.param_groups for p in group["params"]}
            model = self._model_of(stepped) if stepped else None
            own_ids = {id(p) for p in model.parameters()} if model is not None else set()
        self._others += sum(p.numel() for key, p in stepped.items() if key not in own_ids)
        if model is None or began is None or not any(key in own_ids for key in stepped):
            return
        others, self._others = self._others, 0
        epochs = self.models.pop(id(model), None) or self._begun.pop(id(model), None) or _Epochs(model)
        self.models[id(model)] = epochs
        with same_random_numbers():
            # copies: the model goes on, and its present state may be reported later, once it counts
            tree, arrays = module_tree(model), {name: value.copy() for name, value in state(model).items()}
        done = EpochDone(
            number=len(epochs.reported) + 1,
            learning_rate=self._rate,
            loop=began.loop,
            called=began.called,
            optimizer=began.optimizer,
            scheduler=began.scheduler,
            learned=began.learned,
            per_batch=began.rate != self._rate,
            modules=tree,
            other_numbers=others,
            made=self._made_with(model),
            arrays=arrays,
        )
        self._pending = epochs, done
        if not self.losses.running:
            self.report_pending()

    def report_pending(self) -> None:
        """Report the epoch that has ended; its losses are known when train_epoch has returned."""
        if self._pending is None:
            return
        (epochs, done), self._pending = self._pending, None
        done = replace(done, arrays={**done.arrays, "reported": self.losses.taken()})
        if self._script.single:
            self._tell(done)
            done = replace(done, arrays={})
        elif len(epochs.reported) >= MOST_KEPT:
            raise RecipeError("too_many_epochs")
        epochs.reported.append(done)

    def close(self) -> None:
        """The script has ended; steps after the last complete pass over the loader are also an epoch."""
        if self._optimizers:
            self.ended()
        self.report_pending()

    def constructed(self, model: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model of the graded class is made."""
        self._made.setdefault(id(model), (args, kwargs))

    def _made_with(self, model: nn.Module) -> ModelMade | None:
        """What a model was made with; None if the source says it.

        Raises:
            RecipeError: It was made with something other than plain values.
        """
        from_source = self._script.single and self._student.program.recipe.model is not None
        if from_source and not self._reports_arguments:
            return None
        args, kwargs = self._made.get(id(model), ((), {}))
        if not all(
            value is None or isinstance(value, bool | int | float | str)
            for value in (*args, *kwargs.values())
        ):
            raise RecipeError("made_once")
        return ModelMade(tuple(args), dict(kwargs))

    def tell_all(self, epochs: _Epochs) -> None:
        """Report the epochs of the model that counts, if they were kept back."""
        if not self._script.single and self._plan is not None:
            self._tell(replace(self._plan, epochs=max(len(epochs.whole), 1)))
            for number, done in enumerate(epochs.whole, start=1):
                self._tell(replace(done, number=number))

    def others(self, epochs: _Epochs) -> int:
        """How many further models were trained."""
        return sum(id(other) not in epochs.models for other in self.models.values())

    def owner(self, storages: frozenset[int], weights: dict[str, Any]) -> _Epochs | None:
        """The model whose weights these are: it has them, had them after an epoch, or they fit it.

        Args:
            storages: The addresses of the numbers when they were saved.
        """
        fitting = [
            candidate for candidate in reversed(list(self.models.values())) if _fits(candidate.model, weights)
        ]
        for candidate in fitting:
            if storages & {p.data_ptr() for p in candidate.model.parameters()}:
                return candidate
        arrays = {STATE + name: array(value) for name, value in weights.items()}
        for candidate in fitting:
            for done in candidate.reported:
                if _same_arrays(arrays, done.arrays):
                    return candidate
        return fitting[0] if fitting else None

    # --- what is reported ---------------------------------------------------------------------------------

    def _planned(self, optimizer: torch.optim.Optimizer) -> TrainingPlan:
        device = self._ready.device
        planned = self._loops[-1].planned if self._loops else self._limit
        return TrainingPlan(
            epochs=planned or 1,
            batch_size=self._ready.settings.batch_size,
            optimizer=type(optimizer).__name__,
            scheduler=schedule_of(optimizer),
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            assumed=self._ready.settings.assumed,
        )

    def _model_of(self, stepped: dict[int, Any]) -> nn.Module | None:
        """The model with most of these parameters: of the graded class, or of what replaces it."""
        kind = self._student.namespace.get(self._script.model_class)
        best: tuple[tuple[int, int], nn.Module] | None = None
        for epochs in self.models.values():  # nearly always one that was stepped before
            learning = [id(p) for p in epochs.model.parameters() if p.requires_grad]
            if learning and stepped.keys() >= set(learning):
                return epochs.model
        wanted = kind if isinstance(kind, type) and issubclass(kind, nn.Module) else nn.Module
        for module in gc.get_objects():
            if not isinstance(module, wanted):
                continue
            count = sum(p.numel() for p in module.parameters() if id(p) in stepped)
            rank = count, sum(1 for _ in module.modules())
            if count and (best is None or rank > best[0]):
                best = rank, module
        return _unwrapped(best[1]) if best is not None else None


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
    losses.returned = watch.report_pending
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
            _weights_in_memory(saved),
            _constructions_reported(student.namespace.get(script.model_class), watch, other),
            quiet(),
        ):
            _run(student, script, watch, ready)
            model = _final(student, script, watch, saved)
    finally:
        hook.remove()
    epochs = _epochs_of(watch, model)
    watch.tell_all(epochs)
    tell(ended(len(epochs.whole), watch.others(epochs), model, ready))


def _run(student: StudentModule, script: Script, watch: ScriptWatch, ready: Prepared) -> None:
    try:
        for number, statement in enumerate(script.statements):
            if number and number == script.deciding:
                ready.all_is_decided()
            student.run([statement])
            bind_devices(student.namespace, ready.device)
    except StudentFault as fault:
        if watch.losses.running or _is_in_graded_part(fault.error, student):
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
    return Data(watched, ready.data.test_loader)


def _final(student: StudentModule, script: Script, watch: ScriptWatch, saved: dict[str, Saved]) -> nn.Module:
    """The model that counts, with its weights as the script leaves or saves them.

    Raises:
        StudentFault: The student's code raised.
        RecipeError: The saved weights are those of something else.
    """
    last = list(watch.models.values())[-1].model
    if script.final:
        final = _unwrapped(student.evaluated(script.final))
        return final if isinstance(final, nn.Module) else last
    others = False  # a script may save further models that are not of the graded class
    for kept in reversed(list(saved.values())):
        for weights in _states(kept.value):
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


def _epochs_of(watch: ScriptWatch, model: nn.Module) -> _Epochs:
    """The epochs of a model, or of the one that it was copied or averaged from."""
    epochs = watch.models.get(id(model))
    if epochs is not None:
        return epochs
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    for other in reversed(list(watch.models.values())):
        if {name: value.shape for name, value in other.model.state_dict().items()} == shapes:
            return other
    return list(watch.models.values())[-1]


def _same_arrays(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether the second has all arrays of the first, with the same numbers."""
    return second.keys() >= first.keys() and all(
        np.array_equal(value, second[name]) for name, value in first.items()
    )


def _unwrapped(model: Any) -> Any:
    """The model that was given to `torch.compile`, `DataParallel` or `AveragedModel`."""
    while isinstance(model, nn.Module):
        children = dict(model.named_children())
        inner = children.get("_orig_mod") or (children.get("module") if len(children) == 1 else None)
        if inner is None:
            return model
        model = inner
    return model


def _states(value: Any) -> Iterator[dict[str, Any]]:
    """The weights in what was saved: itself, or one of its parts."""
    if isinstance(value, nn.Module):
        value = value.state_dict()
    if not isinstance(value, dict):
        return
    if value and all(isinstance(part, torch.Tensor) for part in value.values()):
        yield unwrapped_names({str(name): part for name, part in value.items()})
        return
    for part in value.values():
        yield from _states(part)


def _storages(value: Any) -> frozenset[int]:
    tensors = (part for weights in _states(value) for part in weights.values())
    return frozenset(part.data_ptr() for part in tensors if part.numel())


def _fits(model: nn.Module, weights: dict[str, Any]) -> bool:
    expected = model.state_dict()
    return expected.keys() == weights.keys() and all(
        expected[name].shape == weights[name].shape for name in expected
    )


@contextlib.contextmanager
def _weights_in_memory(saved: dict[str, Saved]) -> Iterator[None]:
    """Make `torch.save(..., path)` and `torch.load(path)` work in memory, whatever the path."""
    real_save, real_load = torch.save, torch.load

    def save(value: Any, place: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(place, str | os.PathLike):
            saved.pop(os.fspath(place), None)
            saved[os.fspath(place)] = Saved(copy.deepcopy(value), _storages(value))
        else:
            real_save(value, place, *args, **kwargs)

    def load(place: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(place, str | os.PathLike) and os.fspath(place) in saved:
            return copy.deepcopy(saved[os.fspath(place)].value)
        return real_load(place, *args, **kwargs)

    torch.save, torch.load = save, load  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.save, torch.load = real_save, real_load


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
