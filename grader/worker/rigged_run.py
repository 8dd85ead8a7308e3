"""A run of train_epoch, evaluate or a plotting function on rigged models and loaders.

It computes what the function returned, printed, appended, drew and did to the model. Arguments go by
`arguments`. The assignment's checks decide in the judge whether that is right.

Tests: tests/worker/test_rigged_runs.py
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.protocol.replies import Ran
from grader.protocol.requests import RunFunction
from grader.worker.arguments import arguments
from grader.worker.fault import students_code
from grader.worker.figures import kept_figures
from grader.worker.program import StudentModule, quiet, seed_all
from grader.worker.rig import (
    AskForRows,
    Events,
    FeatureModel,
    RecordingSchedule,
    RecordingSGD,
    RiggedDataset,
    TableModel,
    rigged_loader,
)
from grader.worker.streams import logs_in

MAX_NUMBERS = 10_000
MAX_TEXTS, MAX_TEXT = 20, 5000  # of what a function returns, and characters of each
DECOYS = 5  # images in the loader that a function is not given


def rigged_run(student: StudentModule, request: RunFunction, rows: AskForRows) -> Ran:
    """Run one function; whatever the student's code raises goes through."""
    events = Events()
    arrays = {name: torch.from_numpy(value.copy()) for name, value in request.arrays.items()}
    dataset = RiggedDataset(arrays["images"], arrays["labels"], request.class_names)
    loader = rigged_loader(dataset, request.batch_sizes)
    rigged = len(dataset), request.id_bits, rows, events
    if "weights" not in arrays:
        model: TableModel | FeatureModel = TableModel(*rigged)
        optimizer = torch.optim.SGD(model.parameters(), lr=request.learning_rate)
    else:
        model = FeatureModel(arrays["weights"], *rigged)
        optimizer = RecordingSGD(model, request.learning_rate, events)
    model.train(request.initial_mode == "train")
    history: list[Any] = []
    # a function that takes the other loader than the one that it is given works on too few images
    few = RiggedDataset(arrays["images"][:DECOYS], arrays["labels"][:DECOYS], request.class_names)
    decoy = rigged_loader(few, (DECOYS - 1, 1))
    trains = "optimizer" in request.roles
    by_role = {
        "model": model,
        "optimizer": optimizer,
        "data_loader": loader,
        "train_loader": loader if trains else decoy,
        "test_loader": decoy if trains else loader,
        "train_dataset": dataset,
        "test_dataset": dataset,
        "loss_history": history,
        "class_names": list(request.class_names),
        "criterion": torch.nn.CrossEntropyLoss(),
        # a schedule is the student's business, and changes nothing here; its steps are events
        "scheduler": RecordingSchedule(optimizer, events),
        "epoch": 0,
    }
    roles = {name: by_role[role] for name, role in (student.program.roles or {}).items() if role in by_role}
    seed_all(request.seed)
    function = student.namespace[request.function]
    given = request.keyword_arguments
    positional, named = arguments(function, request.roles, by_role, given=given, device=torch.device("cpu"))
    with (
        student.replaced(roles),
        kept_figures(pictures=request.pictures) as drawn,
        quiet() as printed,
        logs_in(printed),
    ):
        with students_code():
            returned = function(*positional, **named)
        gradients_after = torch.is_grad_enabled()
        found: dict[str, Any] = {}
        figures = drawn.described(found, pictures=request.pictures)
    with students_code():  # what it made may be read as no numbers at all
        found["returned"] = np.array(_numbers(returned), dtype=np.float64)
        found["history"] = np.array(_numbers(history), dtype=np.float64)
    steps = 0
    if isinstance(model, FeatureModel) and isinstance(optimizer, RecordingSGD):
        steps = len(optimizer.used)
        found["weights"] = model.weight.detach().numpy().copy()
        found["logit_gradients"] = model.logit_gradients.numpy().copy()
        if optimizer.used:
            found["step_gradients"] = torch.stack(optimizer.used[:1000]).numpy()
    return Ran(
        printed=(printed.getvalue() + "".join(f"\n{text}" for text in _texts(returned)))[-20_000:],
        returned_kind=type(returned).__name__[:80],
        history_keeps_graph=_keeps_graph(history),
        steps=steps,
        events=tuple(events.names),
        training_after=model.training,
        gradients_after=gradients_after,
        figures=figures,
        arrays=found,
    )


def _numbers(value: Any, depth: int = 0) -> list[float]:
    """The numbers in a returned value, in order: through tuples, lists, dicts and small tensors."""
    if isinstance(value, bool) or value is None or isinstance(value, str) or depth > 4:
        return []
    if isinstance(value, int | float | np.number):
        return [_finite(float(value))]
    if isinstance(value, Tensor | np.ndarray):
        flat = torch.as_tensor(value).detach().flatten()[:MAX_NUMBERS]
        return [_finite(float(number)) for number in flat]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [number for part in value[:MAX_NUMBERS] for number in _numbers(part, depth + 1)][:MAX_NUMBERS]
    return []


def _texts(value: Any) -> list[str]:
    """The texts in a returned value, which report as what is printed does."""
    if isinstance(value, dict):
        value = list(value.values())
    parts = value if isinstance(value, list | tuple) else [value]
    return [text[:MAX_TEXT] for text in parts[:MAX_TEXTS] if isinstance(text, str)]


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan


def _keeps_graph(history: list[Any]) -> bool:
    """Whether a loss history holds tensors with their graph."""
    return any(isinstance(entry, Tensor) and entry.requires_grad for entry in history[:MAX_NUMBERS])
