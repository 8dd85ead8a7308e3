"""Which run counts, where the latest gave less than was told before."""

from collections.abc import Sequence

from grader.domain.edit import Because, Edit, RunChosen
from grader.domain.score import LowerRun


def lower_run(edits: Sequence[Edit]) -> LowerRun | None:
    """The run that gave less, until a person or a later run settles it.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    last = next((edit for edit in reversed(edits) if isinstance(edit, RunChosen)), None)
    return LowerRun(last.because is Because.KEPT, last.reason) if last and last.has_fallen else None
