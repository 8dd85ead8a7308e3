"""What was found out about each submission and what people decided: kept for good, and only added to."""

from grader.gradebook.gradebook import Gradebook
from grader.gradebook.records import RunRecord
from grader.gradebook.snapshot import Snapshot
from grader.gradebook.statements import State

__all__ = ["Gradebook", "RunRecord", "Snapshot", "State"]
