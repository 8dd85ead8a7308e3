"""Trained weights, measured in the model of the source, in a worker where nothing was trained.

It asks that worker what a model with the trained weights answers. By the tree, the weights and the answers it
decides whether a training reported the model that the source configures. It never decides what the answers
are worth.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.domain.analyzed_program import TRAINING, Program
from grader.domain.errors import Interruption
from grader.domain.formatting import named
from grader.protocol.error_kinds import gap_in_words
from grader.protocol.frames import FrameLimit
from grader.protocol.link import StudentRaised, WorkerProcess
from grader.protocol.replies import Answered, EpochDone, Loaded, Measurable, Module, Trained
from grader.protocol.requests import MOST_STATE, STATE, Answer, Load, MeasureModel
from grader.protocol.trees import ModelMade
from grader.training.submitted_weights import misfit_in_words
from grader.training.training_job import REPLY_LIMIT, Job, is_crowded

STATE_LIMIT = FrameLimit(document=2_000_000, arrays=MOST_STATE + 64_000_000)


class BuiltOnceOnly(Interruption):
    """The model was built where it trained, and cannot be built again; the message says why, as a clause."""


class Measurer:
    """A worker that holds the student's model as its source configures it."""

    def __init__(self, process: WorkerProcess, job: Job, load: Load, arrays: Mapping[str, Any]) -> None:
        """Ask nothing yet: the model is built at the first question, while training goes on.

        Args:
            process: The worker.
            job: What is trained.
            load: What is executed there: the same as in the worker that trains.
            arrays: Those of MeasureModel.
        """
        self.link = job.linked(process)
        self._job = job
        self._load = load
        self._arrays = arrays
        self._built: Measurable | None = None
        limits = job.limits
        # training itself ends at its limit; then all test images pass the model once more
        self._until = (
            time.monotonic() + limits.training_seconds + limits.load_seconds + 6 * limits.call_seconds
        )

    @property
    def program(self) -> Program:
        """What was analyzed of the source."""
        return self._job.program

    def modules(self, made: ModelMade | None) -> Sequence[Module]:
        """The tree of the model that the source builds.

        Args:
            made: What it was made with, as the worker reports with the first epoch, if the source alone does
                not say.

        Raises:
            BuiltOnceOnly: It cannot be built here.
            StudentRaised: Its part of a GPU's memory was not enough for that.
            WorkerFault: The worker hung, died or talked nonsense.
            EngineError: The worker's own code failed.
        """
        if self._built is None:
            if made is not None and not made.is_small:
                raise BuiltOnceOnly("it was made with more than can be told")
            self._built = self._measurable(made)
        return self._built.modules

    def _measurable(self, made: ModelMade | None) -> Measurable:
        job, share = self._job, self._job.gpu_memory_mb
        measure = MeasureModel(
            self._load.class_names, job.device, job.seed, share and share // 4, made, arrays=self._arrays
        )
        try:
            self.link.ask(self._load, Loaded, seconds=job.limits.load_seconds, limit=REPLY_LIMIT)
            self.link.watch.stage = TRAINING
            return self.link.ask(measure, Measurable, seconds=self._left, limit=REPLY_LIMIT)
        except StudentRaised as raised:
            if raised.problem.resource == "memory" and is_crowded(job):
                raise
            raise BuiltOnceOnly(f"{self._kind(raised)} where it was built again") from raised

    def answered(
        self,
        state: Mapping[str, Any],
        *,
        attention_of: tuple[int, ...] = (),
        inputs_of: tuple[int, ...] = (),
        probe: Any = None,
        seen: Any = None,
    ) -> Answered:
        """What the model answers with these weights.

        Args:
            state: Parameters and buffers by name.
            attention_of, inputs_of: Test images in the worker's order: see Answer.
            probe: Inputs for which it is to answer too, float32; None: there are none.
            seen: Images that it was trained on, uint8, for which it is to answer too.

        Raises:
            BuiltOnceOnly: It cannot be built here.
            StudentRaised: The model raised.
            WorkerFault: The worker hung, died or talked nonsense.
            EngineError: The worker's own code failed.
        """
        arrays = {STATE + name: value for name, value in state.items()}
        if probe is not None:
            arrays["probe"] = probe
        if seen is not None:
            arrays["seen"] = seen
        request = Answer(attention_of, inputs_of, arrays)
        return self.link.ask(request, Answered, seconds=self._left, limit=REPLY_LIMIT)

    def _kind(self, raised: StudentRaised) -> str:
        if raised.gap:
            return gap_in_words(raised.gap, self.program.recipe)
        return self._job.raised(raised.problem)

    @property
    def _left(self) -> float:
        return max(self._until - time.monotonic(), 1.0)

    def close(self) -> None:
        """End the worker."""
        self.link.close()


# --- model identity --------------------------------------------------------------------------------------


# what PyTorch puts around a model, and before the names of its weights
COMPILED, WRAPPED = "_orig_mod.", "module."
WRAPPERS = ("OptimizedModule", "DataParallel", "DistributedDataParallel", "AveragedModel")
AVERAGED = "n_averaged"

State = Mapping[str, Any]


class OtherModel(Interruption):
    """The weights are not those of the model that the source builds; the message says why, as a clause."""


@dataclass(frozen=True)
class ModelThen:
    """A model at one point of its training.

    Attributes:
        state: Its parameters and buffers by name.
        other_tree: How its tree differs from the one that the source builds, as a clause.
        answered: What the checked class answers with its weights.
    """

    state: State
    other_tree: str
    answered: Answered


def asked(
    measurer: Measurer,
    report: EpochDone | Trained,
    attention_of: tuple[int, ...] = (),
    inputs_of: tuple[int, ...] = (),
    seen: Any = None,
) -> ModelThen:
    """Measure the model that a worker reports.

    Args:
        measurer: The worker that answers with these weights.
        report: What the worker reported of it.
        attention_of, inputs_of: See Answer.
        seen: Images that it was trained on; None: they are not asked about.

    Raises:
        OtherModel: Its weights do not fit the model that the source builds.
        BuiltOnceOnly, StudentRaised, WorkerFault, EngineError: As when the measurer is asked.
    """
    state = reported_state(report.arrays, report.modules)
    difference = other_tree(report.modules, measurer.modules(getattr(report, "made", None)))
    probe = report.arrays.get("probe")
    answered = measurer.answered(
        state, attention_of=attention_of, inputs_of=inputs_of, probe=probe, seen=seen
    )
    if answered.misfit is not None:
        raise OtherModel(difference or misfit_in_words(answered.misfit, measurer.program))
    return ModelThen(state, difference, answered)


def reported_state(arrays: Mapping[str, Any], modules: Sequence[Module]) -> dict[str, Any]:
    """The parameters and buffers in a reply, by the names that they have without PyTorch's wrappers.

    Args:
        arrays: The reply's.
        modules: The model's tree.
    """
    state = {name.removeprefix(STATE): value for name, value in arrays.items() if name.startswith(STATE)}
    if _is_wrapped(modules):
        state = {_unwrapped(name): value for name, value in state.items() if name != AVERAGED}
    return {name.replace(COMPILED, ""): value for name, value in state.items()}


def same_state(first: State, second: State) -> bool:
    """Whether two states have the same names and numbers; NaN is like NaN."""
    if first.keys() != second.keys():
        return False
    return all(
        value.shape == second[name].shape and value.tobytes() == second[name].tobytes()
        for name, value in first.items()
    )


def other_tree(trained: Sequence[Module], built: Sequence[Module]) -> str:
    """How the tree of a trained model differs from the one that the source builds; empty if it does not.

    Args:
        trained: The trained model's tree, perhaps within PyTorch's wrappers.
        built: What the source builds.
    """
    wrapped = _is_wrapped(trained)
    kinds = {}
    for module in trained:
        path = f"{module.path}.".replace(COMPILED, "")
        path = (_unwrapped(path) if wrapped else path).removesuffix(".")
        if module.type not in WRAPPERS:
            kinds[path] = module.origin, module.type
    expected = {module.path: (module.origin, module.type) for module in built}
    for path, kind in expected.items():
        if path in kinds and kinds[path] != kind:
            return f"{_part(path)} is a {named(kinds[path][1])} in place of a {named(kind[1])}"
    if missing := [path for path in expected if path not in kinds]:
        return f"{_part(missing[0])} is not there any more"
    if added := [path for path in kinds if path not in expected]:
        return f"{_part(added[0])}, a {named(kinds[added[0]][1])}, was added to it"
    return ""


def same_answers(first: Any, second: Any) -> bool:
    """Whether two sets of logits, (images, classes), are the same, up to the rounding of other kernels."""
    if first is None or second is None or first.shape != second.shape:
        return False
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return False
    spread = max(float(np.abs(second).max()), 1.0)
    return bool(np.abs(first.astype(np.float64) - second).max() <= 1e-2 * spread)


def _is_wrapped(modules: Sequence[Module]) -> bool:
    """Whether the outermost of the modules is one of PyTorch's wrappers."""
    return bool(modules) and modules[0].type in WRAPPERS


def _unwrapped(name: str) -> str:
    """A name without the prefixes of wrappers."""
    while name.startswith((WRAPPED, COMPILED)):
        name = name.removeprefix(WRAPPED).removeprefix(COMPILED)
    return name


def _part(path: str) -> str:
    return f"its part {named(path)}" if path else "the model"
