"""Computes points from evidence: a pure function, so that a new rubric needs no new run of students' code.

Something unknown is never a pass and never a zero: its points are None, and a person is asked.
"""

from grader.scoring.decided_by_people import line_points, stray_targets
from grader.scoring.measurements import interpolated, measured_points, passes, uncertainties
from grader.scoring.submission_score import counting_instead, score
from grader.scoring.tries import feedback_try

__all__ = [
    "counting_instead",
    "feedback_try",
    "interpolated",
    "line_points",
    "measured_points",
    "passes",
    "score",
    "stray_targets",
    "uncertainties",
]
