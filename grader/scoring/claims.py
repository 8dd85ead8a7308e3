"""The accuracy that a student claims: as a person typed it, else as it was read."""

from collections.abc import Sequence

from grader.domain.edit import Claimed, Edit
from grader.domain.evidence import Evidence
from grader.domain.program import Claim

TYPED = "typed by a person"  # students read it: `grader history` says by whom


def claimed(evidence: Evidence, edits: Sequence[Edit]) -> Claim | None:
    """The claim that counts.

    Args:
        evidence: With the claim that outputs or the report made, if any was found.
        edits: Those about the student, oldest first, of any kind. One without a value takes back what was
            typed before.
    """
    typed = [edit for edit in edits if isinstance(edit, Claimed)]
    if typed and typed[-1].accuracy is not None:
        return Claim(typed[-1].accuracy, TYPED, typed[-1].why)
    return evidence.claim
