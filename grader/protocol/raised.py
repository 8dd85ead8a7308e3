"""What the student's code raised, where a person reads it: judges and trainings say it alike."""

import re
from collections.abc import Collection

from grader.domain.assignment import HUB, PROVIDED, TORCH
from grader.domain.program import Program, line_at, place_of
from grader.domain.quoting import quoted
from grader.protocol.exception_names import told_of
from grader.protocol.replies import HANDED_OUT_BATCH_SIZE, MAX_PLACE, Problem, TrainingPlan

SEEN = {
    "no_module": "what should be the model is not an nn.Module",
    "other_outputs": "the model does not return a tensor of shape (batch, classes)",
    "no_learning_rate": "the learning rate became a number that is not finite",
}

# as the template's stubs raise it
_STUB = re.compile(r"TODO (?P<part>(?P<name>\w+)(?:\.__init__|\.forward)?):")


def raised_at(problem: Problem, program: Program) -> str:
    """The place at which something was raised, if the source has such a line."""
    place = place_of(problem.where)
    return str(place) if place is not None and line_at(program.source, place) is not None else ""


def unwritten(problem: Problem, names: Collection[str]) -> str:
    """The part whose stub raised that it is not implemented, if the exception names a graded part."""
    stub = _STUB.match(problem.message.text)
    return stub["part"] if stub is not None and stub["name"] in names else ""


def not_provided(wanted: str, assignment: str) -> str:
    """That a file of weights is not there, whose files are, and where it would be put, as a clause.

    Whoever executes a homework says it alike: a grade's workers and a student's own machine.

    Args:
        wanted: As a worker says it, in `Problem`; empty: which file may not be told.
        assignment: Its id.
    """
    folder = f"reference/{assignment or '<assignment>'}/{PROVIDED}/"
    file = f"the file {quoted(wanted, MAX_PLACE)}" if wanted else "a file of weights that was asked for"
    if wanted and not _is_download(wanted):
        return (
            f"{file} is not there: only weights that the course provides count, or that this code has "
            f"written before (an instructor would put the file into {folder} and its name into [provided])"
        )
    place = "this place" if wanted else "its place"
    return (
        f"{file} is not provided: only weights that the course provides count, and nothing is downloaded "
        f"(an instructor would put the file into {folder} and {place} into [provided.cache])"
    )


def raised_in_training(problem: Problem, program: Program, *, own: bool = False, assignment: str = "") -> str:
    """The type of what was raised by code that knows which images are not hidden, and none of its words.

    Args:
        own: It is the reader's own code on the reader's own machine, where nothing is hidden.
        assignment: Its id.
    """
    if own:
        if problem.wanted:
            return f"{error_for_want(problem)}: {not_provided(problem.wanted, assignment)}"
        return str(problem)
    if problem.seen:
        return f"{problem.type}: {SEEN[problem.seen]}"
    source = "\n".join((program.source or {}).values())
    if problem.wanted:
        # of many files one could be asked for that says something: what stands in the source says nothing new
        known = _stands_in(problem.wanted, source)
        return f"{error_for_want(problem)}: {not_provided(problem.wanted if known else '', assignment)}"
    return told_of(problem.type, source)


def error_for_want(problem: Problem) -> str:
    """What was raised for want of weights: which of its errors a library raises depends on the machine."""
    is_known = problem.type == "FileNotFoundError" and not _is_download(problem.wanted)
    return problem.type if is_known else "an error"


def _is_download(wanted: str) -> bool:
    """Whether a file has a place in a cache."""
    return wanted.partition("/")[0] in (TORCH, HUB)


def _stands_in(wanted: str, source: str) -> bool:
    """Whether a source names a file: as a whole, or of the hub its repository."""
    parts = wanted.split("/")
    names = ["/".join(parts[1:3]), *parts[3:]] if parts[0] == HUB else parts[-1:]
    usual = ("model.safetensors", "pytorch_model.bin")
    return all(name in source or name in usual for name in names)


def plan_in_words(plan: TrainingPlan | None) -> tuple[str, ...]:
    """What had to be assumed for a training, in sentences."""
    if plan is None:
        return ()
    notes = []
    if "batch_size" in plan.assumed:
        notes.append(f"No batch size was found; the handed-out {HANDED_OUT_BATCH_SIZE} was used.")
    if "transform" in plan.assumed:
        notes.append("No transform was found; the handed-out one was used.")
    if "collate" in plan.assumed:
        notes.append(
            "The training loader's `collate_fn` gives no batch of images of the grader's data set; "
            "PyTorch's own was used."
        )
    return tuple(notes)
