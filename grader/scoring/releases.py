"""Whether a grade left for the student, and what it was then."""

from collections.abc import Sequence

from grader.domain.edit import Edit, EditKind
from grader.domain.score import Release


def release(edits: Sequence[Edit]) -> Release | None:
    """When the grade left for the student first and last; None while it did not.

    Args:
        edits: Those about the student, oldest first, of any kind.
    """
    found = [edit for edit in edits if edit.kind is EditKind.RELEASED]
    return Release(found[0].when, found[-1].when, found[-1].value) if found else None
