"""Keeps the evidence about each submission and people's decisions permanently: rows are only added."""

from grader.gradebook.gradebook import Gradebook, MarkingRecords
from grader.gradebook.records import RunRecord
from grader.gradebook.snapshot import Snapshot
from grader.gradebook.statements import State

__all__ = ["Gradebook", "MarkingRecords", "RunRecord", "Snapshot", "State"]
