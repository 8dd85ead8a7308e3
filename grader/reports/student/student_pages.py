"""The pages about one student, which lie side by side: the report, the code and the answers."""

from collections.abc import Mapping
from datetime import datetime

from grader.domain.answers import ANSWERS_FILE
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.files.page_names import ANSWERS_PAGE, REPORT, SUBMISSION_PAGE
from grader.files.view_file import view_in
from grader.reports.student.answers_page import answers_page
from grader.reports.student.student_page import student_page
from grader.reports.student.submission_page import code_links, submission_page


def student_pages(
    assignment: Assignment, evidence: Evidence, score: Score, files: Mapping[str, bytes], now: datetime
) -> dict[str, bytes]:
    """File name -> content: the report, and what lies beside it.

    The page of the code is there where code was handed in, that of the answers where a PDF was accepted, and
    the PDF itself where it was kept.

    Args:
        files: What belongs to the evidence: the pictures, the view of the submission, and the PDF.
        now: When the pages are made.
    """
    view = view_in(files)
    submitted = submission_page(assignment, evidence, score, view=view, generated_at=now)
    links = code_links(evidence, view)
    report = student_page(assignment, evidence, score, images=files, generated_at=now, code=links)
    answers = answers_page(
        assignment, evidence, score, images=files, generated_at=now, code=submitted is not None
    )
    pages = {SUBMISSION_PAGE: submitted, ANSWERS_PAGE: answers, REPORT: report}
    made = {name: page.encode("utf-8") for name, page in pages.items() if page is not None}
    return {ANSWERS_FILE: files[ANSWERS_FILE], **made} if _keeps(evidence, files) else made


def _keeps(evidence: Evidence, files: Mapping[str, bytes]) -> bool:
    return evidence.answers is not None and evidence.answers.kept and ANSWERS_FILE in files
