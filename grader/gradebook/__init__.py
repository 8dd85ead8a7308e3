"""What was found out about each submission, kept so that it can be scored again without running anything."""

from grader.gradebook.gradebook import Gradebook

__all__ = ["Gradebook"]
