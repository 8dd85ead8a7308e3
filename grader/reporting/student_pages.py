"""The pages about one student, which lie side by side: the report, and the submission that it links into."""

from collections.abc import Mapping
from datetime import datetime

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.reporting.code_links import PAGE
from grader.reporting.student_page import student_page
from grader.reporting.submission_page import code_links, submission_page
from grader.reporting.view_file import view_in

REPORT = "report.html"


def student_pages(
    assignment: Assignment, evidence: Evidence, score: Score, files: Mapping[str, bytes], now: datetime
) -> dict[str, bytes]:
    """File name -> page; the page of the submission comes first, and only where code was handed in.

    Args:
        files: What belongs to the evidence: the pictures, and the view of the submission.
        now: When the pages are made.
    """
    view = view_in(files)
    submitted = submission_page(assignment, evidence, score, view=view, generated_at=now)
    links = code_links(evidence, view)
    report = student_page(assignment, evidence, score, images=files, generated_at=now, code=links)
    pages = {REPORT: report.encode("utf-8")}
    return {PAGE: submitted.encode("utf-8"), **pages} if submitted is not None else pages
