"""Who handed in nothing, as a result: known from a list of the class, or from what an LMS lists."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from grader import __version__
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.submission import Origin
from grader.reports.results_json.results_contract import DownloadRecord


def known_students(downloads: Sequence[DownloadRecord]) -> dict[str, Origin]:
    """The students that lists of the class and LMSs name -> what is known of their submission.

    The origin has no key: it is no upload's, and exports look for the student's row by the id.
    """
    known: dict[str, Origin] = {}
    for download in downloads:
        if download.roster is not None:
            known |= dict.fromkeys(download.roster.students, Origin())
        known |= {file.student_id: Origin() for file in download.files if file.student_id}
    for download in downloads:
        known |= {one.student_id: Origin(upload=one.upload, lms=one.lms) for one in download.lacking}
    return known


def absence(assignment: Assignment, student_id: str, origin: Origin, now: datetime) -> Evidence:
    """What is recorded of a student who handed in nothing: there is no submission, and no file.

    Args:
        origin: What is known of it.
    """
    return Evidence(
        student_id=student_id,
        assignment_id=assignment.id,
        # no submission has this digest, so that what is said of this is said of no upload
        submission_digest=hashlib.sha256(f"nothing was handed in\0{student_id}".encode()).hexdigest(),
        graded_at=now,
        absent=True,
        origin=origin,
        missing=tuple(file.role for file in assignment.files if file.required),
        engine=__version__,
        assignment_digest=assignment.digest,
    )
