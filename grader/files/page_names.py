"""What the pages about a student are called, which lie side by side, and how one leads to another."""

from grader.domain.answers import ANSWERS_FILE

REPORT = "report.html"
SUBMISSION_PAGE = "submission.html"
ANSWERS_PAGE = "answers.html"
ATTENTION_PAGE = "attention.html"
# all that lie beside one another, and are made anew together
STUDENT_FILES = (
    SUBMISSION_PAGE,
    ANSWERS_PAGE,
    REPORT,
    ANSWERS_FILE,
)


def beside(report: str, page: str = SUBMISSION_PAGE) -> str:
    """The address of a page that lies beside a report; empty without a report."""
    folder, slash, _ = report.rpartition("/")
    return f"{folder}{slash}{page}" if report else ""
