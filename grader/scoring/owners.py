"""Whose a submission is, where the names of its files alone do not say it."""

from collections.abc import Sequence

from grader.domain.edit import Edit, standing_owner
from grader.domain.score import Ownership


def ownership(edits: Sequence[Edit]) -> Ownership | None:
    """What was found out, or said, of whose a submission is.

    Args:
        edits: Those about it, oldest first, of any kind.
    """
    last = standing_owner(edits)
    if last is None:
        return None
    reason = f"{last.who}: {last.why}" if last.by_person else last.why
    return Ownership(last.held, last.by_person, reason)
