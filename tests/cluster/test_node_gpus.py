"""A machine with several GPUs becomes as many nodes, each with a GPU of its own."""

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from grader.cluster import node_process

# as the driver's tool lists them (NVIDIA's User Guide of MIG); the first is divided into two parts
DIVIDED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0)
  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)
  MIG 3g.20gb     Device  1: (UUID: MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-d3f4d4c3-2b5c-4b2e-8a0f-1d1f0a9c7b11)
"""


@pytest.mark.parametrize(
    ("allowed", "listed", "gpus"),
    [
        (
            None,
            DIVIDED,
            [
                "MIG-c7384736-a75d-5afc-978f-d2f1294409fd",
                "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d",
                "GPU-d3f4d4c3-2b5c-4b2e-8a0f-1d1f0a9c7b11",
            ],
        ),
        (None, "No devices found.\n", []),
        ("2, 3", DIVIDED, ["2", "3"]),
        ("-1", DIVIDED, []),
        ("", DIVIDED, []),
    ],
    ids=["all", "none", "given", "hidden", "nothing given"],
)
def test_each_gpu_or_part_of_one_is_named_as_cuda_names_it(
    allowed: str | None, listed: str, gpus: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(stdout=listed)

    monkeypatch.setattr(subprocess, "run", run)
    if allowed is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert node_process._gpus() == gpus
