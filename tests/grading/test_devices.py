"""Processes that have loaded everything fork others, which can use a GPU all the same."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grader.domain.errors import SandboxError, UsageError
from grader.grading import devices
from grader.protocol import deadlines
from grader.sandbox.host_client import Host
from grader.worker.gpu_trial import train_a_step

FORKED = """
import os, sys
from grader.worker.worker_host import own_variables, prepare
own_variables()
import torch
sys.stderr.write("PREPARED FROM HERE\\n")
sys.stderr.flush()
prepare()
if os.fork() == 0:
    os._exit(1 if torch.cuda._is_in_bad_fork() else 0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others' work is graded on Linux")
@pytest.mark.skipif(torch.version.cuda is None, reason="this PyTorch was built without CUDA")
def test_a_host_does_not_ask_cuda_for_anything() -> None:
    """None of the forks of a process that has asked can use a GPU."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={"LD_DEBUG": "libs", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    prepared = ended.stderr.partition("PREPARED FROM HERE")[2]
    assert prepared and ended.returncode == 0, ended.stderr[-2000:]
    assert "find library=libcuda.so" not in prepared, "CUDA's driver was looked for"


def test_the_step_is_one_that_can_be_taken() -> None:
    train_a_step("cpu")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others' work is graded on Linux")
def test_a_worker_says_what_hinders_it() -> None:
    if torch.cuda.is_available():
        assert devices.gpu_fault() == ""
    else:
        assert "CUDA" in devices.gpu_fault() or "NVIDIA" in devices.gpu_fault()


@pytest.fixture(autouse=True)
def not_tried() -> Iterator[None]:
    """What one test finds out is nothing that another one knows."""
    forget = devices.gpu_fault.cache_clear  # a test may put another function there
    forget()
    yield
    forget()


@pytest.mark.parametrize(
    ("wanted", "node", "fault", "found"),
    [
        ("auto", False, "", "cpu"),
        ("cpu", True, "no driver", "cpu"),
        ("auto", True, "", "cuda"),
        ("cuda", True, "", "cuda"),
        ("cuda", False, "", "There is no NVIDIA GPU on this machine. Use --device cpu or auto."),
        ("auto", True, "no driver", "cannot use the GPU of this machine (no driver). Use --device cpu."),
    ],
)
def test_a_gpu_is_taken_only_if_isolated_code_can_use_it(
    wanted: str, node: bool, fault: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_NODE", tmp_path if node else tmp_path / "none")
    monkeypatch.setattr(devices, "gpu_fault", lambda unofficial: fault)
    if found in ("cpu", "cuda"):
        assert devices.training_device(wanted) == found
    else:
        with pytest.raises(UsageError) as raised:
            devices.training_device(wanted)
        assert found in str(raised.value)


def test_a_gpu_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver may wait for ever, without computing anything."""
    reader, writer = os.pipe()
    child = SimpleNamespace(reader=os.fdopen(reader, "rb", buffering=0), kill=lambda: os.close(writer))
    spawning = SimpleNamespace(spawn=lambda limits, gpu: contextlib.nullcontext(child))
    monkeypatch.setattr(Host, "start", lambda *_, **__: contextlib.nullcontext(spawning))
    monkeypatch.setattr(devices, "TRIAL_SECONDS", 0.1, raising=False)
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 1.0)
    fault = devices.gpu_fault()
    child.reader.close()
    assert fault == "the process that tried it did not answer within 0 s"


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_no_gpu_is_taken_that_the_operator_hides(
    hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_NODE", tmp_path)
    monkeypatch.setattr(devices, "gpu_fault", lambda unofficial: "No CUDA GPUs are available")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert devices.training_device("auto") == "cpu"
    with pytest.raises(UsageError, match="There is no NVIDIA GPU"):
        devices.training_device("cuda")


def test_less_isolation_that_is_accepted_is_accepted_for_the_trial_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a machine with a GPU that gives too little could not grade with --unofficial."""
    asked: list[object] = []

    def start(module: str, *, unofficial: bool, wrapped: bool) -> Host:
        asked.append(unofficial)
        raise SandboxError("no isolation")

    monkeypatch.setattr(devices, "_NODE", tmp_path)
    monkeypatch.setattr(Host, "start", start)
    for unofficial in (True, False):
        with pytest.raises(UsageError, match="no isolation"):
            devices.training_device("auto", unofficial=unofficial)
    assert asked == [True, False]
