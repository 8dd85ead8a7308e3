"""The last word on submissions that cannot be graded, lack a file, or do not exist.

It holds the ruling on such a submission, and who handed in nothing, as a result: known from a list of the
class, or from what an LMS lists. It never rules on what could be graded, and it never scores.
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
from grader.domain.score import GradeStatus, Score
from grader.domain.submission import Origin
from grader.domain.submission_result import Result
from grader.gradebook import Snapshot
from grader.reports.results_json.results_contract import DownloadRecord
from grader.results.current_state import standing_downloads
from grader.results.revision import Revision
from grader.results.session import ClassSession
from grader.scoring.decided_by_people import RULED


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


# --- last word -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LastWord:
    """What a rule came to.

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
    """Have the last word on submissions that lack something: the total is 0, or it counts all the same.

    It is about what was handed in until now: a later attempt is graded as usual.

    Args:
        students: Whom it is about; None: all whose total is withheld for a missing file, or was refused.
        lift: What there is counts.
        allow_lower: Grades that were released may fall.

    Raises:
        UsageError: It cannot be about one of them, there is no reason, or a released grade would fall.
    """
    reason = stated(why)
    named = None if students is None else tuple(dict.fromkeys(students))
    absent, known = _absent(session, named or ())
    about: Sequence[str] = ()

    def decide(snapshot: Snapshot, results: Sequence[Result]) -> Sequence[Edit]:
        nonlocal about
        scores = {result.score.student_id: result.score for result in results}
        if named is None:
            about = _open_ones(scores)
        else:
            held = {result.evidence.origin.carries for result in results if result.score.held}
            _require_possible(scores, named, known, held)
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


def _absent(session: ClassSession, named: Sequence[str]) -> tuple[list[Evidence], Collection[str]]:
    """What is recorded of those who handed in nothing, and all who are known without having handed in."""
    if set(named) <= set(session.book.students()):
        return [], ()
    snapshot = session.book.snapshot()
    known = known_students(standing_downloads(session.book, session.out, snapshot))
    absent = [
        absence(session.assignment, student, known[student], session.clock())
        for student in named
        if student in known and student not in snapshot.evidence
    ]
    return absent, known.keys()


def _open_ones(scores: Mapping[str, Score]) -> list[str]:
    """Those on whom nobody has had the last word, in order."""
    return [
        student
        for student, score in scores.items()
        if score.status in RULED and score.total is None and not score.held
    ]


def _require_possible(
    scores: Mapping[str, Score], named: Sequence[str], known: Collection[str], held: Collection[str]
) -> None:
    """Raises unless a rule can be about each of those who are named.

    Args:
        known: Those of whom a list or the LMS knows.
        held: The ids on uploads of which nobody knows whose they are.

    Raises:
        UsageError: About some it cannot be.
    """
    faults = []
    for student in named:
        if student not in scores:
            near = difflib.get_close_matches(student, [*scores, *known], n=1, cutoff=0.8)
            advice = f"Did you mean {near[0]}?" if near else "Grade with --roster, so that they are known."
            faults.append(f"'{student}' is neither in the gradebook nor on a list of the class. {advice}")
        elif scores[student].status is GradeStatus.ENGINE_ERROR:
            faults.append(
                f"'{student}': the grader failed on it, which costs nobody points. Grade it again, or give "
                "the points of every item by `grader marks set`."
            )
        elif scores[student].status is GradeStatus.GRADED:
            faults.append(f"'{student}' is complete: no file is missing.")
        elif scores[student].total is None and student in held:
            faults.append(
                f"'{student}' may have handed in: an upload with this id is held. `grader owner` says whose."
            )
    if faults:
        raise UsageError("\n".join([*faults, "Nothing was changed. Correct the list."]))
