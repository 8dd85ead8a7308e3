"""Arguments for a student's train_epoch, evaluate or plotting function.

A heuristic: parameters go by their names (`loader`, `hist`, `opt`), else by the handed-out position.
Parameters with defaults of the student's own keep them. A misleading name gets the wrong argument; a required
parameter that nothing explains gets none. Then the call raises, which counts as the student's, and no person
is asked here. The assignment's checks decide what the run is worth.

Tests: tests/worker/test_arguments.py, tests/worker/test_rigged_runs.py
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch


def arguments(
    function: Any,
    handed_out: Sequence[str],
    by_role: Mapping[str, Any],
    *,
    given: Mapping[str, Any] | None = None,
    passed: Sequence[str] = (),
    device: torch.device,
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call: by the parameters' names, else by the handed-out positions.

    A student may reorder the parameters, and may add some with defaults (`criterion=...`), which keep
    theirs, or a `device`. A function that takes anything (`*args`: a decorator's) gets what was handed out.

    Args:
        handed_out: The roles of the parameters in the handed-out order.
        by_role: Role -> value.
        given: Values by the parameter's own name.
        passed: Further parameters with defaults that the student's own call passes (`scheduler`).
        device: For a parameter of that name which has no default.
    """
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return [by_role[role] for role in handed_out], dict(given or {})
    chosen: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        name, required = parameter.name, parameter.default is parameter.empty
        role = role_of(name)
        if given and name in given:
            chosen[name] = given[name]
        elif not required and name not in (*handed_out, *passed):
            continue  # a parameter of the student's own, with a default of its own
        elif role is not None and role in by_role:
            chosen[name] = by_role[role]
        elif name.lower() in ("device", "dev"):
            chosen[name] = device
        elif required and index < len(handed_out):
            chosen[name] = by_role[handed_out[index]]
    return [], chosen


def role_of(name: str) -> str | None:
    """What a parameter of that name is handed."""
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
