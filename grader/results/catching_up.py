"""What tells of an earlier state of the book is written again, whatever kept it from being written."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.domain.formatting import counted
from grader.gradebook import Gradebook
from grader.results.class_pages import write_pages
from grader.results.current_results import told_results
from grader.results.page_state import are_stale, is_graded_now

OLDER = "The pages are older than the gradebook"


class CatchUpOutcome(Enum):
    """What became of files that told of an earlier state."""

    WRITTEN = auto()
    READ_ONLY = auto()  # the folder may only be read here
    RUBRIC_CHANGED = auto()  # new totals are for `grader regrade`
    NOT_WRITTEN = auto()  # the disk did not take them


@dataclass(frozen=True)
class CatchUp:
    """Files that told of an earlier state of the book, and what became of them.

    Attributes:
        out: The folder of the results.
        reports: How many reports were written.
        error: Why they were not written, where the disk did not take them.
    """

    outcome: CatchUpOutcome
    out: Path
    reports: int = 0
    error: str = ""

    def __str__(self) -> str:
        match self.outcome:
            case CatchUpOutcome.READ_ONLY:
                return f"{OLDER}, and {self.out} may only be read here."
            case CatchUpOutcome.RUBRIC_CHANGED:
                return f"{OLDER}, and the rubric changed since. `grader regrade` writes them anew."
            case CatchUpOutcome.NOT_WRITTEN:
                return f"{OLDER}. {self.error}"
        reports = f"{counted(self.reports, 'report')} and the" if self.reports else "The"
        return (
            "The pages were older than the gradebook (a command was cut short, or somebody else adds to it). "
            f"Written again: {reports[:1].lower()}{reports[1:]} class's files."
        )


def are_behind(book: Gradebook, out: Path, assignment_id: str) -> bool:
    """Whether the files of a folder tell of an earlier state, and nobody is about to write them anyway."""
    return are_stale(out, book, assignment_id) and not is_graded_now(out)


def caught_up(
    assignment: Assignment, book: Gradebook, out: Path, clock: Callable[[], datetime]
) -> CatchUp | None:
    """Write what is older than the book; None where nothing is.

    No total changes by it: where the rubric changed since, that is for `grader regrade`.

    Raises:
        UsageError: The book cannot be used.
    """
    if not are_behind(book, out, assignment.id):
        return None
    if not os.access(out, os.W_OK):
        return CatchUp(CatchUpOutcome.READ_ONLY, out)
    snapshot = book.snapshot()
    try:
        told_results(assignment, snapshot)
    except UsageError:
        return CatchUp(CatchUpOutcome.RUBRIC_CHANGED, out)
    try:
        written = write_pages(assignment, book, out, clock())
    except UsageError as error:
        return CatchUp(CatchUpOutcome.NOT_WRITTEN, out, error=str(error))
    return CatchUp(CatchUpOutcome.WRITTEN, out, written.reports)
