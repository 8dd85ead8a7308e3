"""Rulings on submissions that cannot be graded, lack a file, or do not exist, and on failed oral checks.

It records rulings on such submissions. It also makes a result for students who handed in nothing and are
known from a class list or an LMS. It rules on what could be graded only after an oral check that was not
passed, and it never scores.
"""

import difflib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grader import __version__
from grader.decisions.corrections import stated
from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, Ruled
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.oral_check import UNSETTLED
from grader.domain.score import GradeStatus, Score
from grader.domain.submission import Origin
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.reports.results_json.results_schema import DownloadRecord
from grader.results.current_state import current_downloads
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring.decided_by_people import RULED


def known_students(downloads: Sequence[DownloadRecord]) -> dict[str, Origin]:
    """The students whom class lists and LMSs name -> what is known about their submission.

    The origin has no key: it does not belong to an upload, and exports find the student's row by the id.
    """
    origins: dict[str, Origin] = {}
    for download in downloads:
        if download.roster is not None:
            origins |= dict.fromkeys(download.roster.students, Origin())
        origins |= {file.student_id: Origin() for file in download.files if file.student_id}
    for download in downloads:
        origins |= {
            missing.student_id: Origin(upload=missing.upload, lms=missing.lms) for missing in download.lacking
        }
    return origins


def absence(assignment: Assignment, student_id: str, origin: Origin, now: datetime) -> Evidence:
    """The record of a student who handed in nothing: without a submission or files.

    Args:
        origin: What is known about it.
    """
    return Evidence(
        student_id=student_id,
        assignment_id=assignment.id,
        # no submission has this digest, so that decisions about this never apply to an upload
        submission_digest=hashlib.sha256(f"nothing was handed in\0{student_id}".encode()).hexdigest(),
        graded_at=now,
        absent=True,
        origin=origin,
        missing=tuple(file.role for file in assignment.files if file.required),
        engine=__version__,
        assignment_digest=assignment.digest,
    )


# --- last word -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastWord:
    """The result of a ruling.

    Attributes:
        students: Whom it is about.
    """

    students: tuple[str, ...]
    revision: Revision


def rule(
    session: ClassSession,
    students: Sequence[str] | None,
    *,
    why: str,
    lift: bool = False,
    allow_lower: bool = False,
) -> LastWord:
    """Rule on submissions that lack something, or whose oral check was not passed: 0, or it counts anyway.

    The ruling is about what was handed in so far: a later attempt is graded as usual.

    Args:
        students: Whom it is about; None: all whose total is withheld for a missing file, or who were refused.
        lift: Whether the existing points count.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: One of them cannot be ruled on, there is no reason, or a released grade would fall.
    """
    reason = stated(why)
    named = None if students is None else tuple(dict.fromkeys(students))
    absent, known_ids = _absences(session, named or ())
    about: Sequence[str] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal about
        scores = {result.score.student_id: result.score for result in results}
        if named is None:
            about = _needing_ruling(scores)
        else:
            held = {result.evidence.origin.carries for result in results if result.score.held}
            _require_ruling_possible(scores, named, known_ids, held)
            about = named
        digests = {student: snapshot.evidence[student].submission_digest for student in about}
        return [
            Ruled(
                who=session.who,
                when=session.clock(),
                why=reason,
                student_id=student,
                counts=lift,
                digest=digests[student],
            )
            for student in about
        ]

    cause = "rule --lift" if lift else "rule"
    revision = session.revised(cause, decide=decide, absent=absent, allow_lower=allow_lower)
    return LastWord(tuple(about), revision)


def _absences(session: ClassSession, named: Sequence[str]) -> tuple[list[Evidence], Collection[str]]:
    """The records of those who handed in nothing, and the ids of all students known from lists."""
    if set(named) <= set(session.book.students()):
        return [], ()
    snapshot = session.snapshot()
    origins = known_students(current_downloads(session.book, session.out, snapshot))
    absent = [
        absence(session.assignment, student, origins[student], session.clock())
        for student in named
        if student in origins and student not in snapshot.evidence
    ]
    return absent, origins.keys()


def _needing_ruling(scores: Mapping[str, Score]) -> list[str]:
    """The students who need a ruling and have none, in order."""
    return [
        student
        for student, score in scores.items()
        if score.status in RULED and score.lacks_total and not score.held
    ]


def _require_ruling_possible(
    scores: Mapping[str, Score], named: Sequence[str], known: Collection[str], held: Collection[str]
) -> None:
    """Check that each of the named students can be ruled on.

    Args:
        known: The students whom a list or the LMS knows.
        held: The ids carried by held uploads, whose owner nobody knows.

    Raises:
        UsageError: Some cannot.
    """
    faults = []
    for student in named:
        if student not in scores:
            similar = difflib.get_close_matches(student, [*scores, *known], n=1, cutoff=0.8)
            advice = (
                f"Did you mean {similar[0]}?" if similar else "Grade with --roster, so that they are known."
            )
            faults.append(f"'{student}' is neither in the gradebook nor on a class list. {advice}")
        elif scores[student].status is GradeStatus.ENGINE_ERROR:
            faults.append(
                f"'{student}': the grader failed on it, which costs nobody points. Grade it again, or give "
                "the points of every item with `grader marks set`."
            )
        elif scores[student].status is GradeStatus.GRADED and not _ruled_after_oral(scores[student]):
            faults.append(_no_ruling(scores[student]))
        elif scores[student].lacks_total and student in held:
            faults.append(
                f"'{student}' may have handed in: an upload with this id is held. `grader owner` says whose."
            )
    if faults:
        raise UsageError("\n".join([*faults, "Nothing was changed. Correct the list."]))


def _ruled_after_oral(score: Score) -> bool:
    """Whether a person rules on a complete submission, because its oral check was not passed."""
    return score.oral is not None and score.oral.outcome in UNSETTLED


def _no_ruling(score: Score) -> str:
    """Why there is nothing to rule on in a complete submission, in a sentence."""
    if score.awaits_oral:
        return f"'{score.student_id}' is to be asked first: `grader oral` records how the check went."
    return f"'{score.student_id}' is complete: no file is missing."
