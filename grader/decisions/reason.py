"""Why somebody decided something: every decision is recorded with it."""

from grader.domain.errors import UsageError
from grader.domain.formatting import printable


def stated(why: str) -> str:
    """A reason on one line.

    Raises:
        UsageError: It is empty.
    """
    reason = " ".join(printable(why).split())
    if not reason:
        raise UsageError("--why is empty. Say why in a sentence: students and colleagues read it.")
    return reason
