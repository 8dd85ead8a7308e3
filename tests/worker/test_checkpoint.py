"""Reading a `.pth`: weights only, bounded, plain; and whether it fits the model."""

import io
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

from grader.protocol.replies import Misfit
from grader.worker.loaded_weights import misfit, state_dict


class Whole(nn.Module):
    """A model that somebody saves as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(3, 2)


def saved(value: Any) -> bytes:
    """The bytes of a checkpoint."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


GOOD = Whole().state_dict()


@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        dict(GOOD),
        {"state_dict": GOOD, "epoch": 3},
        {"model_state_dict": GOOD, "optimizer": {"lr": 0.1}},
        {"model": GOOD},
        OrderedDict((f"module.{name}", value) for name, value in GOOD.items()),
        OrderedDict((f"_orig_mod.{name}", value) for name, value in GOOD.items()),
        OrderedDict((f"module._orig_mod.{name}", value) for name, value in GOOD.items()),
        {"n_averaged": torch.tensor(3)} | {f"module.{name}": value for name, value in GOOD.items()},
    ],
    ids=["plain", "dict", "nested", "tutorial", "short", "data parallel", "compiled", "both", "averaged"],
)
def test_usual_forms_are_read(value: Any) -> None:
    """Plain, nested in a dictionary of the training's state, or with what a wrapper puts before each name."""
    found = state_dict(saved(value), 10_000)
    assert isinstance(found, dict)
    assert set(found) == set(GOOD)
    assert misfit(Whole(), found) is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (saved(Whole()), "whole_model"),
        (b"", "unreadable"),
        (b"PK\x03\x04 not a zip", "unreadable"),
        (saved(GOOD)[:-300], "unreadable"),
        (saved([1, 2]), "no_state_dict"),
        (saved({}), "no_state_dict"),
        (saved({"epoch": 3}), "odd_entry"),
        (saved({5: torch.zeros(2)}), "odd_entry"),
        (saved({"a": torch.zeros(2, 2).to_sparse()}), "unreadable"),
        (saved({"a": torch.zeros(100_000)}), "too_large"),
    ],
    ids=["whole", "empty", "no zip", "cut", "list", "nothing", "number", "key", "sparse", "large"],
)
def test_everything_else_is_refused_with_the_reason(data: bytes, why: str) -> None:
    """And nothing of it is executed."""
    found = state_dict(data, 10_000)
    assert found == why


def test_a_tensor_that_claims_more_than_it_holds_is_refused() -> None:
    """A stride of 0 makes a file of a kilobyte claim a terabyte."""
    bomb = torch.zeros(1).expand(2**38)
    data = saved({"a": bomb})
    assert len(data) < 5000
    found = state_dict(data, 2**60)
    assert found == "too_large"


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64, torch.float8_e5m2, torch.uint16],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_tensors_of_any_type_fit_or_are_told_why(dtype: torch.dtype) -> None:
    """Half as many bits, whole numbers, complex ones: they are converted as PyTorch converts, or refused."""
    data = saved({name: value.to(dtype) for name, value in GOOD.items()})
    found = state_dict(data, 10_000)
    assert isinstance(found, dict)
    assert misfit(Whole(), found) is None
    Whole().load_state_dict(found)


@pytest.mark.parametrize(
    "value",
    [
        {"a": torch.zeros(3).as_strided((2**20, 2**20), (0, 0))},
        {"a": torch.zeros(2, 3).expand(2, 2, 3)},
        {"a": torch.zeros(3).to("meta")},
        {"a": nn.Parameter(torch.zeros(3)).data.to_sparse()},
        {"state_dict": {"a": [torch.zeros(3)]}},
        {"a": {"b": torch.zeros(3)}},
        {f"{number}": torch.zeros(0) for number in range(5_001)},
    ],
    ids=["stride 0", "expanded", "no storage", "sparse", "list", "nested", "many"],
)
def test_tensors_that_are_not_plain_are_refused(value: Any) -> None:
    """Before anything is computed with them."""
    assert isinstance(state_dict(saved(value), 2**62), str)


def test_a_pickle_is_not_executed(tmp_path: Any) -> None:
    """Neither in the zip form nor in the old one."""
    trace = tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> Any:
            return (open, (str(trace), "w"))

    file = io.BytesIO()
    torch.save(Evil(), file, _use_new_zipfile_serialization=False)
    for data in (saved(Evil()), file.getvalue()):
        assert isinstance(state_dict(data, 10_000), str)
    assert not trace.exists()


def test_a_misfit_is_told_by_numbers_and_an_example() -> None:
    """What is missing, what is unknown, or which shape differs."""
    assert misfit(Whole(), {"line.weight": torch.zeros(2, 3)}) == Misfit(1, 0, 2, "line.bias")
    assert misfit(Whole(), {**GOOD, "extra": torch.zeros(1)}) == Misfit(0, 1, 2, "extra")
    turned = {**GOOD, "line.weight": torch.zeros(3, 2)}
    assert misfit(Whole(), turned) == Misfit(0, 0, 2, "line.weight", ((3, 2), (2, 3)))
