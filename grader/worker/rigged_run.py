"""A run of train_epoch, evaluate or a plotting function on rigged models and loaders.

It computes what the function returned, printed, appended, drew and did to the model. A heuristic assigns the
arguments: by the names of parameters (`loader`, `hist`, `opt`), else by the position in the stub. The
student's own parameters keep their defaults. A misleading name gets the wrong argument, and if the call then
raises, that counts as the student's fault. The checks decide in the judge whether what comes back is right.

Tests: tests/worker/test_arguments.py, tests/worker/test_rigged_runs.py
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grader.protocol.replies import Ran
from grader.protocol.requests import RunFunction
from grader.worker.figures import kept_figures
from grader.worker.rigged_objects import (
    AskForRows,
    Events,
    FeatureModel,
    RecordingSchedule,
    RecordingSGD,
    RiggedDataset,
    TableModel,
    rigged_loader,
)
from grader.worker.student_environment import logs_in
from grader.worker.student_faults import students_code
from grader.worker.student_module import StudentModule, quiet, seed_all


def arguments(
    function: Any,
    handed_out: Sequence[str],
    by_role: Mapping[str, Any],
    *,
    given: Mapping[str, Any] | None = None,
    passed: Sequence[str] = (),
    device: torch.device,
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call: by the parameters' names, else by positions in the stub.

    A student may reorder the parameters, and may add some with defaults (`criterion=...`), which keep
    theirs, or a `device`. A function that takes anything (`*args`: a decorator's) gets what was handed out.

    Args:
        handed_out: The names of the parameters in the stub, in order: roles, or names of roles (`loader`).
        by_role: Role -> value.
        given: Values by the parameter's own name.
        passed: Further parameters with defaults that the student's own call passes (`scheduler`).
        device: For a parameter of that name which has no default.
    """
    given = dict(given or {})
    roles = {name: name if name in by_role else role_of(name) for name in handed_out}
    by_name = {name: by_role[role] for name, role in roles.items() if role is not None and role in by_role}
    by_name |= {name: device for name in handed_out if _is_device(name)}
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        positional = {**by_name, **{name: value for name, value in given.items() if name in by_name}}
        further = {name: value for name, value in given.items() if name not in by_name}
        return [positional[name] for name in handed_out if name in positional], further
    chosen: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        name, required = parameter.name, parameter.default is parameter.empty
        role = role_of(name)
        if name in given:
            chosen[name] = given[name]
        elif not required and name not in (*handed_out, *passed):
            continue  # the student's own parameter, which has a default
        elif role is not None and role in by_role:
            chosen[name] = by_role[role]
        elif _is_device(name):
            chosen[name] = device
        elif required and index < len(handed_out) and handed_out[index] in by_name:
            chosen[name] = by_name[handed_out[index]]
    return [], chosen


def _is_device(name: str) -> bool:
    return name.lower() in ("device", "dev")


def role_of(name: str) -> str | None:
    """The role of what a parameter of that name should get."""
    lowered = name.lower()
    if "loader" in lowered or lowered in ("data", "dl", "iterator", "batches"):
        return "data_loader"
    if "hist" in lowered or lowered in ("losses", "loss_list", "train_losses", "test_losses"):
        return "loss_history"
    if lowered in ("criterion", "loss_fn", "loss_function", "loss_func"):
        return "criterion"
    if "sched" in lowered:
        return "scheduler"
    if "opt" in lowered:
        return "optimizer"
    if ("class" in lowered and "sample" not in lowered) or lowered in ("labels", "names"):
        return "class_names"
    if "model" in lowered or lowered in ("net", "network"):
        return "model"
    return "epoch" if lowered == "epoch" else None


# --- rigged run ------------------------------------------------------------------------------------------


MAX_NUMBERS = 10_000
MAX_TEXTS, MAX_TEXT = 20, 5000  # of what a function returns, and characters of each
DECOYS = 5  # images in the loader that a function is not given


def rigged_run(student: StudentModule, request: RunFunction, rows: AskForRows) -> Ran:
    """Run one function; whatever the student's code raises passes through."""
    events = Events()
    arrays = {name: torch.from_numpy(value.copy()) for name, value in request.arrays.items()}
    dataset = RiggedDataset(arrays["images"], arrays["labels"], request.class_names)
    loader = rigged_loader(dataset, request.batch_sizes, shuffled=request.shuffled)
    rigged = len(dataset), request.id_bits, rows, events
    if "weights" not in arrays:
        model: TableModel | FeatureModel = TableModel(*rigged)
        optimizer = torch.optim.SGD(model.parameters(), lr=request.learning_rate)
    else:
        model = FeatureModel(arrays["weights"], *rigged)
        optimizer = RecordingSGD(model, request.learning_rate, events)
    model.train(request.initial_mode == "train")
    own_class = student.namespace.get(student.program.script.model_class)
    model.poses_as = own_class if isinstance(own_class, type) else None
    history: list[Any] = []
    # a function that uses the loader of the other side sees too few images
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
    keyword_arguments = request.keyword_arguments
    positional, named = arguments(
        function, request.roles, by_role, given=keyword_arguments, device=torch.device("cpu")
    )
    with (
        student.replaced(roles),
        kept_figures(pictures=request.pictures) as drawn,
        quiet() as printed,
        logs_in(printed),
    ):
        with students_code():
            returned = function(*positional, **named)
        gradients_after = torch.is_grad_enabled()
        outputs: dict[str, Any] = {}
        figures = drawn.described(outputs, pictures=request.pictures)
    with students_code():  # what it made may raise when it is read as numbers
        outputs["returned"] = np.array(_numbers(returned), dtype=np.float64)
        outputs["history"] = np.array(_numbers(history), dtype=np.float64)
    steps = 0
    learned: tuple[int, ...] = ()
    if isinstance(model, FeatureModel) and isinstance(optimizer, RecordingSGD):
        steps, learned = len(optimizer.used), tuple(model.learned)
        outputs["weights"] = model.weight.detach().numpy().copy()
        outputs["logit_gradients"] = model.logit_gradients.numpy().copy()
        if optimizer.used:
            outputs["step_gradients"] = torch.stack(optimizer.used[:1000]).numpy()
    return Ran(
        printed=(printed.getvalue() + "".join(f"\n{text}" for text in _texts(returned)))[-20_000:],
        returned_kind=type(returned).__name__[:80],
        history_keeps_graph=_keeps_graph(history),
        history_has_tensors=any(isinstance(entry, Tensor) for entry in history[:MAX_NUMBERS]),
        steps=steps,
        events=tuple(events.names),
        learned=learned,
        training_after=model.is_training,
        gradients_after=gradients_after,
        figures=figures,
        arrays=outputs,
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
    """The texts in a returned value, which count like printed ones."""
    if isinstance(value, dict):
        value = list(value.values())
    parts = value if isinstance(value, list | tuple) else [value]
    return [text[:MAX_TEXT] for text in parts[:MAX_TEXTS] if isinstance(text, str)]


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan


def _keeps_graph(history: list[Any]) -> bool:
    """Whether a loss history holds tensors with their graph."""
    return any(isinstance(entry, Tensor) and entry.requires_grad for entry in history[:MAX_NUMBERS])
