"""Processes that have loaded everything fork others, which can use a GPU all the same."""

import subprocess
import sys

import pytest
import torch

from grader.grading import gpu_check
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
        assert gpu_check.gpu_fault() == ""
    else:
        assert "CUDA" in gpu_check.gpu_fault() or "NVIDIA" in gpu_check.gpu_fault()
