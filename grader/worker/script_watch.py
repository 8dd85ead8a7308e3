"""What a script trains, watched from outside: epochs of models, and what was saved.

An epoch is a pass over the training loader in which an optimizer stepped a model. In a loop over epochs that
uses no loader, it is one iteration, and without either a call of the graded training function. After each
epoch the model's weights go to the judge; the student's random numbers are untouched. Which model counts is
decided in `grader.worker.script_run`; what it is worth is measured in `grader.training`.

Tests: tests/training/test_replay.py, tests/training/test_cheats.py
"""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from grader.protocol.replies import EpochDone, Stepped, Trained, TrainingPlan
from grader.protocol.requests import STATE
from grader.protocol.trees import ModelMade
from grader.worker.fed_images import FedImages
from grader.worker.model_outputs import array, module_tree, same_random_numbers, state
from grader.worker.rigged_objects import WatchedLoader
from grader.worker.student_faults import RecipeError, student_places, students_code
from grader.worker.student_module import StudentModule
from grader.worker.training_passes import LossWatch, schedule_of
from grader.worker.training_setup import Prepared, learning_rate

Tell = Callable[[TrainingPlan | EpochDone | Stepped | Trained], None]
MOST_KEPT = 200  # epochs of models that may turn out not to count


@dataclass
class _Loop:
    """A loop over epochs while it runs."""

    planned: int | None


@dataclass
class Epochs:
    """The epochs of one model.

    Attributes:
        reported: What was reported, or will be, of each.
        before: The epochs of the model whose weights it began with, if that is another one.
    """

    model: nn.Module
    reported: list[EpochDone] = field(default_factory=list)
    before: "Epochs | None" = None

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


class ScriptWatch:
    """Watches what a script trains.

    Attributes:
        models: Each model that was stepped, with its epochs, in the order of the last step.
        losses: What train_epoch reports.
        steps_taken: How many steps optimizers have taken.
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
        self.models: dict[int, Epochs] = {}
        self.losses = losses
        self.steps_taken = 0
        self._fed: weakref.WeakKeyDictionary[nn.Module, FedImages] = weakref.WeakKeyDictionary()
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
        self._known: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._steps: Counter[int] = Counter()  # of each optimizer, in this epoch
        self._begun: dict[int, Epochs] = {}  # models that were stepped, and have no epoch yet
        self._limit: int | None = None
        self._others = 0
        self._planned_before = 0
        self._pending: tuple[Epochs, EpochDone] | None = None
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
        self.steps_taken += 1
        self._rate = learning_rate(optimizer)
        notes_beginning = self._began is None and not self._script.single
        if self._began is None:
            self._began = self._first_step(optimizer, self._rate)
        if notes_beginning or optimizer not in self._known:  # to find the model may take some 100 ms
            self._known.add(optimizer)
            with students_code():
                model = self._model_of(_stepped([optimizer]))
            if model is not None:
                if model not in self._fed:
                    self._fed[model] = FedImages(model)
                if notes_beginning:
                    self._note_beginning(model)
        self._optimizers[id(optimizer)] = optimizer
        self._steps[id(optimizer)] += 1
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

    def _note_beginning(self, model: nn.Module) -> None:
        """When a model is stepped for the first time, remember whose weights it begins with."""
        if id(model) in self.models or id(model) in self._begun:
            return
        with same_random_numbers():
            arrays = state(model)
        earlier = (
            epochs
            for epochs in reversed(list(self.models.values()))
            if any(_same_arrays(arrays, done.arrays) for done in epochs.reported)
        )
        self._begun[id(model)] = Epochs(model, before=next(earlier, None))

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
        steps, self._steps = max(self._steps.values(), default=0), Counter()
        with students_code():
            stepped = _stepped(optimizers)
            model = self._model_of(stepped) if stepped else None
            own_ids = {id(p) for p in model.parameters()} if model is not None else set()
        self._others += sum(p.numel() for key, p in stepped.items() if key not in own_ids)
        if model is None or began is None or not any(key in own_ids for key in stepped):
            return
        others, self._others = self._others, 0
        epochs = self.models.pop(id(model), None) or self._begun.pop(id(model), None) or Epochs(model)
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
            steps=steps,
            batches=len(self.loader),
            made=self._made_with(model),
            arrays=arrays,
        )
        self._pending = epochs, done
        if not self.losses.running:
            self.report_pending()

    def trainer_returned(self) -> None:
        """The graded training function has returned: that ends an epoch if no loader and no loop shows it."""
        if self._optimizers and not self._loops and not self.loader.passing:
            self.ended()
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

    def tell_all(self, epochs: Epochs) -> None:
        """Report the epochs of the model that counts, if they were kept back."""
        if not self._script.single and self._plan is not None:
            self._tell(replace(self._plan, epochs=max(len(epochs.whole), 1)))
            for number, done in enumerate(epochs.whole, start=1):
                self._tell(replace(done, number=number))

    def fed_otherwise(self, epochs: Epochs, images: torch.Tensor) -> bool:
        """Whether a model was at last fed other images than these, (n, channels, height, width)."""
        fed = self._fed.get(epochs.model)
        if fed is None:  # a copy with another's weights
            return epochs.before is not None and self.fed_otherwise(epochs.before, images)
        return fed.differ_from(images)

    def others(self, epochs: Epochs) -> int:
        """How many further models were trained."""
        return sum(id(other) not in epochs.models for other in self.models.values())

    def owner(self, storages: frozenset[int], weights: dict[str, Any]) -> Epochs | None:
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
        return unwrapped_model(best[1]) if best is not None else None


def _stepped(optimizers: Iterable[torch.optim.Optimizer]) -> dict[int, Any]:
    """The parameters that optimizers step, by `id`."""
    return {id(p): p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def _same_arrays(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether the second has all arrays of the first, with the same numbers."""
    return second.keys() >= first.keys() and all(
        np.array_equal(value, second[name]) for name, value in first.items()
    )


def _fits(model: nn.Module, weights: dict[str, Any]) -> bool:
    expected = model.state_dict()
    return expected.keys() == weights.keys() and all(
        expected[name].shape == weights[name].shape for name in expected
    )


def unwrapped_model(model: Any) -> Any:
    """The model that was given to `torch.compile`, `DataParallel` or `AveragedModel`."""
    while isinstance(model, nn.Module):
        children = dict(model.named_children())
        inner = children.get("_orig_mod") or (children.get("module") if len(children) == 1 else None)
        if inner is None:
            return model
        model = inner
    return model
