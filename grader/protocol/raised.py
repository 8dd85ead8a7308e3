"""What the student's code raised, where a person reads it: judges and trainings say it alike."""

import re
from collections.abc import Collection

from grader.domain.program import Program, line_at, place_of
from grader.protocol.exception_names import told_of
from grader.protocol.replies import HANDED_OUT_BATCH_SIZE, Problem, TrainingPlan

SEEN = {
    "no_module": "what should be the model is no nn.Module",
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


def raised_in_training(problem: Problem, program: Program, *, own: bool = False) -> str:
    """The type of what was raised by code that knows which images are not hidden, and none of its words.

    Args:
        own: It is the reader's own code on the reader's own machine, where nothing is hidden.
    """
    if own:
        return str(problem)
    if problem.seen:
        return f"{problem.type}: {SEEN[problem.seen]}"
    return told_of(problem.type, "\n".join((program.source or {}).values()))


def plan_in_words(plan: TrainingPlan | None) -> tuple[str, ...]:
    """What had to be assumed for a training, in sentences."""
    if plan is None:
        return ()
    notes = []
    if "batch_size" in plan.assumed:
        notes.append(f"No batch size was found; the handed-out {HANDED_OUT_BATCH_SIZE} was used.")
    if "transform" in plan.assumed:
        notes.append("No transform was found; the handed-out one was used.")
    return tuple(notes)
