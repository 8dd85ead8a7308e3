"""A GPU that is full, that fails, or that is another one than the student's, costs nobody points."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from grader.protocol.replies import Problem, Raised
from grader.worker import student_faults
from grader.worker.graded_images import GradedImages
from grader.worker.service import _raised
from grader.worker.student_environment import redirect_gpu_calls
from grader.worker.student_faults import problem
from grader.worker.training_setup import Prepared, ended
from grader.worker.transforms import handed_out_transform

GB = 10**9
HINT = "\nCUDA kernel errors might be asynchronously reported at some other API call."


def from_driver(words: str, kind: Any = torch.AcceleratorError) -> BaseException:  # type: ignore[attr-defined]
    """An exception that no `raise` statement raised, as those of CUDA."""

    def waiting() -> Iterator[None]:
        yield

    try:
        waiting().throw(kind(f"CUDA error: {words}{HINT}"))
    except RuntimeError as error:
        return error
    raise AssertionError


def refused() -> BaseException:
    """What PyTorch's own allocator raises."""

    def waiting() -> Iterator[None]:
        yield

    try:
        waiting().throw(torch.OutOfMemoryError("CUDA out of memory."))  # type: ignore[attr-defined]
    except RuntimeError as error:
        return error
    raise AssertionError


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A GPU of 80 GB: what is free of it, and the most that this process held."""
    memory = {"free": 79 * GB, "held": GB}
    faked = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "get_device_properties": lambda _: SimpleNamespace(total_memory=80 * GB),
        "get_per_process_memory_fraction": lambda: 1.0,
        "max_memory_reserved": lambda: memory["held"],
        "mem_get_info": lambda: (memory["free"], 80 * GB),
    }
    for name, fake in faked.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return memory


@pytest.mark.parametrize(
    ("free", "held", "share"), [(79, 1, 0.0125), (20, 60, 0.75), (2, 1, 0.975), (79, 60, 0.75)]
)
def test_what_others_hold_of_a_gpu_counts_as_taken(
    gpu: dict[str, int], free: int, held: int, share: float
) -> None:
    """Or a model that needs little fails on a GPU that another user has filled."""
    gpu |= {"free": free * GB, "held": held * GB}
    found = problem(refused())
    assert found.resource == "memory" and found.gpu_share == pytest.approx(share)


def test_a_gpu_without_room_for_its_driver_is_full(
    gpu: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so in another class than PyTorch's allocator, and cannot be asked any more."""

    def fails(*_: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: out of memory")

    monkeypatch.setattr(torch.cuda, "mem_get_info", fails)
    monkeypatch.setattr(torch.cuda, "get_device_properties", fails)
    found = problem(from_driver("out of memory"))
    assert found.resource == "memory" and found.gpu_share == 1.0


@pytest.mark.parametrize(
    ("words", "is_ours"),
    [
        ("uncorrectable ECC error encountered", True),
        ("unspecified launch failure", True),
        ("CUDA-capable device(s) is/are busy or unavailable", True),
        ("unknown error", True),
        ("device-side assert triggered", False),
        ("invalid argument", False),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_fails_is_ours_and_a_failed_assertion_on_it_is_the_students(
    words: str, is_ours: bool
) -> None:
    reply = _raised(from_driver(words), "student")
    assert (reply == Raised(Problem("UnusableGpuError"), "engine")) is is_ours
    assert is_ours or (reply.whose, reply.problem.type) == ("student", "AcceleratorError")


@pytest.mark.usefixtures("gpu")
def test_older_versions_of_pytorch_have_no_class_for_a_gpus_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(student_faults, "_GPU_ERROR", RuntimeError)
    failed = _raised(from_driver("unspecified launch failure", RuntimeError), "student")
    assert failed == Raised(Problem("UnusableGpuError"), "engine")
    assert _raised(from_driver("invalid argument", RuntimeError), "student").whose == "student"
    assert problem(ValueError("no GPU here")).resource == ""


def test_nobody_can_claim_that_a_gpu_failed(gpu: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    failed = "unspecified launch failure"
    with pytest.raises(RuntimeError) as claimed:
        raise torch.AcceleratorError(f"CUDA error: {failed}")
    assert _raised(claimed.value, "student").whose == "student"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert _raised(from_driver(failed), "student").whose == "student", "where none was used, none failed"


@pytest.mark.parametrize("named", ["cuda:1", "mps", torch.device("cuda", 3), "cuda"])
def test_another_gpu_that_a_student_has_is_the_one_of_the_run(
    named: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is the processor where that trains; or a Mac's user loses points on a GPU alone."""
    for kind in (torch.Tensor, torch.nn.Module):
        for name in ("to", "cuda"):
            monkeypatch.setattr(kind, name, getattr(kind, name))  # is put back
    redirect_gpu_calls("meta")  # stands for a GPU, which need not be here
    images, model = torch.zeros(2), torch.nn.Linear(2, 2)
    moved = [images.to(named), images.to(device=named), images.cuda(named, non_blocking=True), images.cuda()]
    moved += [model.to(named).weight, torch.nn.Linear(2, 2).cuda(1).weight, images.double().to(named)]
    assert {tensor.device.type for tensor in moved} == {"meta"}
    assert images.to("cpu").device.type == "cpu" and images.to(torch.float64).device.type == "cpu"


def test_a_model_that_stays_on_the_processor_answers_there() -> None:
    """As with `DEVICE = "cpu"` in the source; or its outputs would seem to differ from those of its class."""
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    graded = GradedImages(images, [0, 1, 0, 1], ("a", "b"), handed_out_transform(8, 1))
    ready = Prepared(
        torch.device("meta"),  # stands for a GPU
        cast("Any", None),
        cast("Any", None),
        graded,
        graded,
        sized=True,
    )
    trained = ended(2, 0, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)), ready)
    assert trained.arrays["probe_logits"].shape == (4, 2) and trained.multiply_adds == 128
