"""Repeated calls: whether a failed part is random, and a trained model answers as when measured.

The last call of a failed part is repeated twice, in evaluation mode and within a separate time limit. If it
cannot be repeated nothing is concluded, and a pass or failure is never reversed. A trained model is the
checked class with its trained weights; randomness excuses a different answer. A person decides what follows,
and `grader.training` measures the accuracy.

Tests: tests/judge/test_folding.py, tests/judge/test_trained_models.py, tests/judge/test_trained_pair.py
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from grader.domain.assignment import CheckSpec
from grader.domain.errors import EngineError
from grader.domain.measure import TrainingCall
from grader.judge.checked_component import Component
from grader.judge.student import Student
from grader.kit import Cause, Mismatch, same
from grader.protocol.link import WorkerFault
from grader.protocol.trees import ModelMade


class RandomPart:
    """Repeats the calls of failed checks.

    Its time is bounded, and separate from that of the checks: it must not cost a slow student points.
    """

    def __init__(self, seconds: float) -> None:
        """Repeat calls.

        Args:
            seconds: How long this may take for one submission.
        """
        self._left = seconds

    def failure(self, error: BaseException | None, student: Student, spec: CheckSpec) -> Mismatch | None:
        """A Mismatch if the output of the judged part is random; None if it is not, or if that is not known.

        What a check says about such a part would be true for one call only.

        Args:
            error: What the check raised.
        """
        recognized = isinstance(error, Mismatch) and (error.diagnosis is not None or error.cause is not None)
        if not isinstance(error, AssertionError) or recognized:
            return None
        judged = [
            part for part in student.built if part.name == spec.component and part.last_call is not None
        ]
        cost = 2 * judged[-1].last_seconds if judged else 0.0
        if not judged or cost > self._left:
            return None
        self._left -= cost
        waited = student.worker.waited
        try:
            student.allow(max(self._left, 1.0))
            random = judged[-1].is_random()
        except (Mismatch, WorkerFault, EngineError):
            random = False
        student.worker.waited = waited
        if not random:
            return None
        return Mismatch(
            f"`{judged[-1].label}` gives a different output each time for the same input, in evaluation mode "
            "and with the same weights. Nothing that depends on its output can be judged.",
            hint="Look in forward for what is drawn at random, or kept from one call to the next.",
            cause=Cause.RANDOM,
        )


# --- trained model ---------------------------------------------------------------------------------------


OTHERWISE = "Its outputs differ from those where it was measured, with the same weights and images"


class TrainedModel:
    """The student's model in its own sizes, with the weights of its training.

    Attributes:
        state: Its parameters and buffers by name, as training left them.
        inputs: Some of the hidden images as the model is fed them, float32 (images, channels, height, width).
    """

    def __init__(self, model: Component, state: Mapping[str, Tensor], inputs: Tensor) -> None:
        self.state = dict(state)
        self.inputs = inputs
        self._model = model
        self._held: set[str] = set()  # the names of what the worker now holds as training left it

    def __call__(
        self, inputs: Tensor, changed: Mapping[str, Tensor] | None = None, *, train: bool = False
    ) -> Tensor:
        """The scores for inputs, (images, classes).

        Args:
            inputs: As the model is fed them.
            changed: Parameters and buffers that have other values; the rest are as training left them.
            train: In training mode, without dropout; else in evaluation mode.

        Raises:
            Mismatch: It raised, or returned no scores.
        """
        changed = changed or {}
        self._model.set_weights({n: v for n, v in self.state.items() if n not in self._held} | dict(changed))
        # a model in training mode may change its buffers
        self._held = {p.name for p in self._model.parameters} & self.state.keys() - changed.keys()
        scores = self._model(inputs, train=train, without_dropout=True)
        if scores.ndim != 2 or len(scores) != len(inputs):
            raise Mismatch(f"The trained model returned a tensor of shape {tuple(scores.shape)}.")
        return scores


@dataclass(frozen=True)
class MeasuredModel:
    """A trained model as it was when it was measured.

    Attributes:
        state: Its parameters and buffers by name.
        inputs: Some of the hidden images as the model is fed them.
        scores: What it answered for them, (images, classes).
        made: What it was made with, if the student's source alone does not say.
    """

    state: Mapping[str, Tensor]
    inputs: Tensor
    scores: Tensor
    made: ModelMade | None = None


def trained_model(student: Student, then: MeasuredModel, call: TrainingCall | None = None) -> TrainedModel:
    """The trained model, in a worker of the checks.

    Args:
        student: The submission.
        call: How the model is made where it is trained by a call; None: as the student's source makes it.

    Raises:
        Mismatch: It cannot be built, or answers differently here.
        WorkerFault: The worker hung, died or talked nonsense.
    """
    made = (
        student.configured_model(then.made) if call is None else student.build(call.model, **call.arguments)
    )
    model = TrainedModel(made, then.state, then.inputs)
    here = model(then.inputs)
    if here.shape != then.scores.shape:
        raise Mismatch(f"{OTHERWISE}: its scores have the shape {tuple(here.shape)}.")
    # random answers cannot be compared; the checks say whether they may be random
    if not same(here, then.scores, tolerance=1e-2) and same(model(then.inputs), here):
        raise Mismatch(f"{OTHERWISE}.")
    return model


def state_of(arrays: Mapping[str, object], prefix: str) -> dict[str, Tensor]:
    """The tensors among arrays whose names begin with `prefix`, by the rest of their names."""
    return {
        name.removeprefix(prefix): torch.from_numpy(value.copy())  # type: ignore[attr-defined]
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
