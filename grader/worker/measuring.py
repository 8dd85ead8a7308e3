"""A trained model's answers: its class as it was checked, with its weights as data.

Nothing was trained in this worker, and whatever a training left besides weights stays where it was trained.
It decides whether weights fit the class. `grader.training` measures what the answers are worth.

Tests: tests/worker/test_checkpoint.py, tests/training/test_augmented_evaluation.py
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from grader.protocol.replies import HANDED_OUT_BATCH_SIZE, Answered, Measurable, Misfit
from grader.protocol.requests import STATE, Answer, MeasureModel
from grader.worker.device import usable_device
from grader.worker.fault import students_code
from grader.worker.images import GradedImages
from grader.worker.outputs import answers, array, attention, logits, module_tree, same_random_numbers
from grader.worker.program import StudentModule
from grader.worker.recipe import configured_model, transforms
from grader.worker.transforms import without_chance


class Measuring:
    """The student's model as its source configures it, and the images that it answers for."""

    def __init__(self, student: StudentModule, request: MeasureModel) -> None:
        """Build the model.

        Raises:
            RecipeError: The source has none.
            StudentFault: The student's code raised.
        """
        self._device = usable_device(request.device, request.gpu_memory_mb)
        labels = request.arrays["train_labels"].tolist()
        self._model = configured_model(student, labels, self._device, seed=request.seed, made=request.made)
        _, transform = transforms(student, [], request.arrays["test_images"][0])
        self._classes = request.class_names
        test, classes = request.arrays["test_images"], request.class_names
        with students_code():  # deterministic transforms, which are the student's, are applied here
            self._certain = certain = without_chance(transform, test[0])
            self._test = GradedImages(test, None, classes, certain)
            self._augmented = None
            if certain is not transform:
                self._augmented = GradedImages(test, None, classes, transform)

    def measurable(self) -> Measurable:
        """The reply to MeasureModel."""
        return Measurable(module_tree(self._model))

    def answered(self, request: Answer) -> Answered:
        """The reply to Answer.

        Raises:
            StudentFault: The model raised, or returns something else.
        """
        given = {
            name.removeprefix(STATE): torch.from_numpy(value.copy())
            for name, value in request.arrays.items()
            if name.startswith(STATE)
        }
        with students_code():
            why = misfit(self._model, given)
            if why is not None:
                return Answered(why)
            self._model.load_state_dict(given)
        return Answered(arrays=self._outputs(request))

    def _outputs(self, request: Answer) -> dict[str, Any]:
        found: dict[str, Any] = {}
        with same_random_numbers():
            found["logits"] = self._logits(self._test)
            if self._augmented is not None:
                found["augmented"] = self._logits(self._augmented)
            if "probe" in request.arrays:
                probe = torch.from_numpy(request.arrays["probe"].copy())
                found["probe_logits"] = answers(self._model, [probe], self._device, len(self._test.classes))
            if "seen" in request.arrays:
                with students_code():
                    seen = GradedImages(request.arrays["seen"].copy(), None, self._classes, self._certain)
                found["seen_logits"] = self._logits(seen)
        if request.attention_of:
            weights = attention(self._model, self._test, self._device, request.attention_of)
            found |= {} if weights is None else {"attention": weights}
        if request.inputs_of:
            with students_code():
                fed = torch.cat([self._test.batch(index, index + 1) for index in request.inputs_of])
                found["inputs"] = array(fed.float())
        return found

    def _logits(self, images: GradedImages) -> Any:
        return logits(self._model, images, self._device, HANDED_OUT_BATCH_SIZE)


def _entries(example: str, names: Iterable[str]) -> int:
    """How many entries the first numbered list in a tensor's name has among all names; 0: there is none."""
    found = re.match(r"(.*?)\b\d+\.", example)
    if found is None:
        return 0
    entry = re.compile(rf"{re.escape(found[1])}(\d+)\.")
    return len({each[1] for each in map(entry.match, names) if each is not None})


def misfit(model: nn.Module, weights: Mapping[str, Tensor]) -> Misfit | None:
    """What keeps weights from fitting a model; None when they fit."""
    expected = model.state_dict()
    missing = [name for name in expected if name not in weights]
    unknown = [name for name in weights if name not in expected]
    if missing or unknown:
        example = [*missing, *unknown][0]
        entries = _entries(example, weights), _entries(example, expected)
        told = entries if all(entries) else ()
        return Misfit(len(missing), len(unknown), len(expected), example, entries=told)
    for name, value in expected.items():
        # a lazy layer takes the shape that it is given
        if not is_lazy(value) and weights[name].shape != value.shape:
            return Misfit(0, 0, len(expected), name, (tuple(weights[name].shape), tuple(value.shape)))
    return None
