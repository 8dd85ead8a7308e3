"""What tells of an earlier state of the book is written again, whatever kept it from being written."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted
from grader.gradebook import Gradebook
from grader.results.page_state import are_stale, is_graded_now
from grader.results.revision import told_results, write_pages

OLDER = "The pages are older than the gradebook"


def are_behind(book: Gradebook, out: Path, assignment_id: str) -> bool:
    """Whether the files of a folder tell of an earlier state, and nobody is about to write them anyway."""
    return are_stale(out, book, assignment_id) and not is_graded_now(out)


def caught_up(assignment: Assignment, book: Gradebook, out: Path, clock: Callable[[], datetime]) -> str:
    """Write what is older than the book, and say so in a sentence; empty where nothing is.

    No total changes by it: where the rubric changed since, that is for `grader regrade`.

    Raises:
        UsageError: The book cannot be used.
    """
    if not are_behind(book, out, assignment.id):
        return ""
    if not os.access(out, os.W_OK):
        return f"{OLDER}, and {out} may only be read here."
    snapshot = book.snapshot()
    try:
        told_results(assignment, snapshot)
    except UsageError:
        return f"{OLDER}, and the rubric changed since. `grader regrade` writes them anew."
    try:
        count = write_pages(assignment, book, out, clock())
    except UsageError as error:
        return f"{OLDER}. {error}"
    reports = f"{counted(count, 'report')} and the class's files" if count else "The class's files"
    return (
        f"The pages were older than the gradebook (a command was cut short, or somebody else adds to it). "
        f"Written again: {reports[:1].lower()}{reports[1:]}."
    )
