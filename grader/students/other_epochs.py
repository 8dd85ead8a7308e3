"""A homework with another number of epochs, for a short try."""

from grader.analysis import program as analyzed
from grader.analysis.rewriting import rewritten
from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.program import Program


def with_epochs(program: Program, assignment: Assignment, epochs: int) -> Program:
    """The program, in whose source other epochs are written.

    Args:
        program: A student's own.
        epochs: In the place of each number of epochs that the source writes as a number.

    Raises:
        UsageError: It writes none as a number.
    """
    tuned = [*program.tuned, *(value for each in program.further.values() for value in each.tuned)]
    places = {value.written for value in tuned if value.name == "epochs" and value.written is not None}
    if not places:
        raise UsageError(
            f"--epochs {epochs}: {program.file} does not write its number of epochs as a number of its own. "
            "Write one, as in N_EPOCHS = 30, or train without --epochs."
        )
    changed = rewritten(program, {place: str(epochs) for place in places})
    return analyzed(program.file, changed.code, assignment.program_rules, changed.modules)
