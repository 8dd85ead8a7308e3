"""The model that a training tells of, and whether it is the one that the source configures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.domain.errors import Interruption
from grader.domain.quoting import named
from grader.protocol.replies import Answered, EpochDone, Module, Trained
from grader.protocol.requests import STATE
from grader.training.weight_mismatches import misfit_in_words
from grader.training.weights_measured import Measurer

# what PyTorch puts around a model, and before the names of its weights
COMPILED, WRAPPED = "_orig_mod.", "module."
WRAPPERS = ("OptimizedModule", "DataParallel", "DistributedDataParallel", "AveragedModel")
AVERAGED = "n_averaged"

State = Mapping[str, Any]


class OtherModel(Interruption):
    """The weights are not those of the model that the source builds; the message says why, as a clause."""


@dataclass(frozen=True)
class ModelThen:
    """A model at some time of its training.

    Attributes:
        state: Its parameters and buffers by name.
        other_tree: How its tree differs from the one that the source builds, as a clause.
        answered: What the class that was checked answers with its weights.
    """

    state: State
    other_tree: str
    answered: Answered


def asked(
    measurer: Measurer,
    told: EpochDone | Trained,
    attention_of: tuple[int, ...] = (),
    inputs_of: tuple[int, ...] = (),
    seen: Any = None,
) -> ModelThen:
    """The model that a worker tells of, measured.

    Args:
        measurer: Is asked.
        told: What the worker tells.
        attention_of, inputs_of: See Answer.
        seen: Images that it was trained on; None: they are not asked about.

    Raises:
        OtherModel: Its weights do not fit the model that the source builds.
        BuiltOnceOnly, StudentRaised, WorkerFault, EngineError: As when the measurer is asked.
    """
    state = told_state(told.arrays, told.modules)
    difference = other_tree(told.modules, measurer.modules(getattr(told, "made", None)))
    probe = told.arrays.get("probe")
    answered = measurer.answered(
        state, attention_of=attention_of, inputs_of=inputs_of, probe=probe, seen=seen
    )
    if answered.misfit is not None:
        raise OtherModel(difference or misfit_in_words(answered.misfit, measurer.program))
    return ModelThen(state, difference, answered)


def told_state(arrays: Mapping[str, Any], modules: Sequence[Module]) -> dict[str, Any]:
    """The parameters and buffers in a reply, by the names that they have without PyTorch's wrappers.

    Args:
        arrays: The reply's.
        modules: The model's tree.
    """
    found = {name.removeprefix(STATE): value for name, value in arrays.items() if name.startswith(STATE)}
    if _is_wrapped(modules):
        found = {_unwrapped(name): value for name, value in found.items() if name != AVERAGED}
    return {name.replace(COMPILED, ""): value for name, value in found.items()}


def same_state(one: State, other: State) -> bool:
    """Whether two states have the same names and numbers; NaN is like NaN."""
    if one.keys() != other.keys():
        return False
    return all(
        value.shape == other[name].shape and value.tobytes() == other[name].tobytes()
        for name, value in one.items()
    )


def other_tree(told: Sequence[Module], built: Sequence[Module]) -> str:
    """How the tree of a trained model differs from the one that the source builds; empty where it does not.

    Args:
        told: The trained model's, perhaps within wrappers of PyTorch's.
        built: What the source builds.
    """
    wrapped = _is_wrapped(told)
    kinds = {}
    for module in told:
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


def same_answers(one: Any, other: Any) -> bool:
    """Whether two sets of logits, (images, classes), are one function's: other kernels round otherwise."""
    if one is None or other is None or one.shape != other.shape:
        return False
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return False
    spread = max(float(np.abs(other).max()), 1.0)
    return bool(np.abs(one.astype(np.float64) - other).max() <= 1e-2 * spread)


def _is_wrapped(modules: Sequence[Module]) -> bool:
    """Whether the outermost of the modules is a wrapper of PyTorch's."""
    return bool(modules) and modules[0].type in WRAPPERS


def _unwrapped(name: str) -> str:
    """A name without what wrappers put before it."""
    while name.startswith((WRAPPED, COMPILED)):
        name = name.removeprefix(WRAPPED).removeprefix(COMPILED)
    return name


def _part(path: str) -> str:
    return f"its part {named(path)}" if path else "the model"
