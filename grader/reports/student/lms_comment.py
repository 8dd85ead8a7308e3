"""The comment that stands beside a grade in an LMS."""

from grader.domain.assignment import Assignment
from grader.domain.formatting import points
from grader.reports.typesetting import language_of


def lms_comment(assignment: Assignment, grade: float, *, with_report: bool) -> str:
    """The comment on a grade, in the language of the course.

    Args:
        grade: In points of the assignment, after the penalty for lateness.
        with_report: Whether the report is attached.
    """
    sentences = [f"Grade: {points(grade)} of {points(assignment.maximum)} points."]
    if with_report:
        sentences.append("The attached report explains it.")
    return language_of(assignment).translated(" ".join(sentences))
