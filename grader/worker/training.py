"""Training a student's model with the student's own code.

The labels of the test images are not here: after each epoch the weights go to the judge. Without a training
script it raises a gap, and a person decides. `script_run` decides how the script runs; `grader.training`
measures what it is worth.

Tests: tests/worker/test_worker_training.py
"""

import torch

from grader.protocol.requests import Train
from grader.worker.device import usable_device
from grader.worker.fault import RecipeError
from grader.worker.preparation import prepared
from grader.worker.program import StudentModule
from grader.worker.script_run import Tell, run_script


def train(student: StudentModule, request: Train, tell: Tell) -> None:
    """Train.

    Args:
        tell: Told the plan, each epoch, and the end.

    Raises:
        RecipeError: The source does not say how.
        StudentFault: The student's code raised.
    """
    torch.set_num_threads(request.threads)
    device = usable_device(request.device, request.gpu_memory_mb)
    if student.program.script.missing:
        raise RecipeError("nothing_trains")
    run_script(student, prepared(student, request, device), tell, request.other)
