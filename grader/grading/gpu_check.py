"""Asks a worker, isolated as in grading, whether it can use the GPU that PyTorch sees outside.

A GPU that a worker cannot use makes every training unknown: `grader doctor` says so before a class is graded.
"""

import json

from grader.domain.errors import EngineError
from grader.sandbox import ProcessLimits
from grader.sandbox.host_client import Host

CPU_SECONDS = 120
MOST_BYTES = 10_000


def gpu_fault() -> str:
    """Why a worker cannot use the GPU; empty when it can."""
    limits = ProcessLimits(cpu_seconds=CPU_SECONDS)
    try:
        with (
            Host.start("grader.worker.gpu_trial", wrapped=True) as host,
            host.spawn(limits, gpu=True) as child,
        ):
            answer = b""
            while not answer.endswith(b"\n") and len(answer) < MOST_BYTES:
                part = child.reader.read(MOST_BYTES)
                if not part:
                    return "the process that tried it ended without a word"
                answer += part
    except EngineError as error:
        return str(error)
    return str(json.loads(answer))
