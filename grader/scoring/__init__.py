"""Points from evidence: a pure function, so that grading again with another rubric runs no student's code.

What is unknown is never a pass and never a zero: its points are None, and a person is asked.
"""

from grader.scoring.measured import accuracy_points, passes, uncertainties
from grader.scoring.people import stray_targets
from grader.scoring.points import interpolated
from grader.scoring.releases import falls, line_points
from grader.scoring.score import score

__all__ = [
    "accuracy_points",
    "falls",
    "interpolated",
    "line_points",
    "passes",
    "score",
    "stray_targets",
    "uncertainties",
]
