"""Whether it was a limit of ours that refused memory, as it was measured and not as it is said."""

from grader.domain.ending import Ending
from grader.protocol.replies import Problem
from grader.training.training_job import Execution

NEAR_GPU_MEMORY = 0.5  # of what there is: what is refused is asked for as a whole, and does not count as held


def ran_out(problem: Problem, ending: Ending, job: Execution) -> bool:
    """Whether memory was refused because of a limit of ours."""
    if job.device != "cuda":
        return ending.near_memory
    if job.gpu_memory_mb is not None:
        return True  # with all of the GPU's memory it turns out
    return problem.gpu_share >= NEAR_GPU_MEMORY


def is_crowded(job: Execution) -> bool:
    """Whether another try with all of the GPU's memory would tell more."""
    return job.device == "cuda" and job.gpu_memory_mb is not None


def memory_in_words(job: Execution) -> str:
    """What was not enough, as a clause."""
    if job.device != "cuda":
        return f"our memory limit of {job.limits.memory_mb} MB was reached"
    share = job.gpu_memory_mb
    whose = "the GPU's memory" if share is None else f"its part of the GPU's memory ({share} MB)"
    return f"{whose} was not enough"
