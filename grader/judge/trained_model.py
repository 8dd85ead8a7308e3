"""A trained model as a check sees it: the class that was checked, with its trained weights.

It decides whether the model answers here as where it was measured; chance excuses a difference. A person
decides what follows from a finding, and `grader.training` measures the accuracy.

Tests: tests/judge/test_trained_models.py, tests/judge/test_trained_pair.py
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from grader.judge.component import Component
from grader.judge.student import Student
from grader.kit import Mismatch, same

OTHERWISE = "It answers otherwise than where it was measured, with the same weights and images"


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
        self._held: set[str] = set()  # the names of what the worker holds as training left it

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


def trained_model(
    student: Student, state: Mapping[str, Tensor], inputs: Tensor, scores: Tensor
) -> TrainedModel:
    """The trained model, in a worker of the checks.

    Args:
        student: Whose it is.
        state: Its parameters and buffers by name.
        inputs: Some of the hidden images as the model is fed them.
        scores: What it answered for them where it was measured, (images, classes).

    Raises:
        Mismatch: It cannot be built, or answers otherwise here.
        WorkerFault: The worker hung, died or talked nonsense.
    """
    model = TrainedModel(student.configured_model(), state, inputs)
    here = model(inputs)
    if here.shape != scores.shape:
        raise Mismatch(f"{OTHERWISE}: its scores have the shape {tuple(here.shape)}.")
    # what is left to chance cannot be compared: whether it may be, the checks say
    if not same(here, scores, tolerance=1e-2) and same(model(inputs), here):
        raise Mismatch(f"{OTHERWISE}.")
    return model


def state_of(arrays: Mapping[str, object], prefix: str) -> dict[str, Tensor]:
    """The tensors among arrays whose names begin with `prefix`, by the rest of their names."""
    return {
        name.removeprefix(prefix): torch.from_numpy(value.copy())  # type: ignore[attr-defined]
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
