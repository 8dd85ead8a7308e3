"""What a student's function is handed, whatever its parameters are called and in whatever order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from grader.worker.rigged_run import arguments

CPU = torch.device("cpu")
VALUES = {
    "model": "M",
    "optimizer": "O",
    "data_loader": "L",
    "loss_history": "H",
    "class_names": "C",
    "scheduler": "S",
    "epoch": 3,
}
TRAIN = ("model", "optimizer", "data_loader", "loss_history")
PLOT = ("model", "data_loader", "class_names")


def handed_out(model, optimizer, data_loader, loss_history): ...  # type: ignore[no-untyped-def]
def reordered(net, train_loader, opt, losses): ...  # type: ignore[no-untyped-def]
def renamed(a, b, c, d): ...  # type: ignore[no-untyped-def]
def with_device(model, optimizer, loader, history, device): ...  # type: ignore[no-untyped-def]
def device_in_the_way(model, optimizer, device, loader, history): ...  # type: ignore[no-untyped-def]
def with_defaults(model, optimizer, loader, history, criterion=None, device="mine"): ...  # type: ignore[no-untyped-def]
def with_schedule(model, optimizer, loader, history, scheduler, epoch): ...  # type: ignore[no-untyped-def]
def by_keyword(model, optimizer, *, loader, loss_history): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (handed_out, {"model": "M", "optimizer": "O", "data_loader": "L", "loss_history": "H"}),
        (reordered, {"net": "M", "train_loader": "L", "opt": "O", "losses": "H"}),
        (renamed, {"a": "M", "b": "O", "c": "L", "d": "H"}),
        (with_device, {"model": "M", "optimizer": "O", "loader": "L", "history": "H", "device": CPU}),
        (device_in_the_way, {"model": "M", "optimizer": "O", "device": CPU, "loader": "L", "history": "H"}),
        (with_defaults, {"model": "M", "optimizer": "O", "loader": "L", "history": "H"}),
        (
            with_schedule,
            {"model": "M", "optimizer": "O", "loader": "L", "history": "H", "scheduler": "S", "epoch": 3},
        ),
        (by_keyword, {"model": "M", "optimizer": "O", "loader": "L", "loss_history": "H"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_parameters_are_understood(function: Callable[..., None], expected: dict[str, Any]) -> None:
    """By name first, by the handed-out position where the name says nothing; own defaults are kept."""
    assert arguments(function, TRAIN, VALUES, device=CPU) == ([], expected)


def test_values_by_name_come_first() -> None:
    """`samples_per_class` is not a class name."""

    def plot(model, data_loader, names, samples_per_class=4, title="x"): ...  # type: ignore[no-untyped-def]

    found = arguments(plot, PLOT, VALUES, given={"samples_per_class": 2}, device=CPU)
    assert found == ([], {"model": "M", "data_loader": "L", "names": "C", "samples_per_class": 2})


LOADED = ("model", "loader", "criterion", "optimizer", "scheduler", "device")
OTHERS = {**VALUES, "criterion": "E"}


def test_names_of_the_stub_may_be_names_of_roles() -> None:
    """A stub calls the loader `loader`, and a student calls it anything, or takes anything."""

    def renamed_all(a, b, c, d, e, f): ...  # type: ignore[no-untyped-def]
    def wrapper(*args, **kwargs): ...  # type: ignore[no-untyped-def]

    values = ["M", "L", "E", "O", "S", CPU]
    assert arguments(renamed_all, LOADED, OTHERS, device=CPU) == (
        [],
        dict(zip("abcdef", values, strict=True)),
    )
    assert arguments(wrapper, LOADED, OTHERS, device=CPU) == (values, {})
    assert arguments(wrapper, LOADED, OTHERS, given={"scheduler": None, "n": 2}, device=CPU) == (
        ["M", "L", "E", "O", None, CPU],
        {"n": 2},
    )


def test_function_that_takes_anything_gets_what_was_handed_out() -> None:
    """A decorator without functools.wraps hides the parameters."""

    def wrapper(*args, **kwargs): ...  # type: ignore[no-untyped-def]

    assert arguments(wrapper, PLOT, VALUES, given={"n": 2}, device=CPU) == (["M", "L", "C"], {"n": 2})
