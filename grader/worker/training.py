"""Training the student's model: by the student's own loop, or rebuilt from its values where that fails.

The labels of the test images are not here: after each epoch the logits go to the judge.
"""

import torch

from grader.protocol.replies import WhyRebuilt
from grader.protocol.requests import Train
from grader.worker.device import usable_device
from grader.worker.preparation import prepared
from grader.worker.program import StudentModule
from grader.worker.rebuild import Tell, rebuilt
from grader.worker.replay import NotReplayed, replayed


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
    recipe = student.program.recipe
    why: WhyRebuilt = "form"
    raised = None
    if recipe.replay is not None:
        ready = prepared(student, request, device, validates=recipe.replay.validates)
        try:
            replayed(student, ready, recipe.replay, tell)
        except NotReplayed as told:
            why, raised = told.why, told.problem
        else:
            return
    rebuilt(student, prepared(student, request, device), why, tell, raised)
