"""Training the student's model by the student's own code.

The labels of the test images are not here: after each epoch the weights go to the judge.
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
