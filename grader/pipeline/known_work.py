"""Work that was done before: what nothing has changed about is not done again."""

from grader import __version__
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.submission import Submission
from grader.gradebook import RunRecord
from grader.pipeline.run import Run


def known_evidence(run: Run, found: Evidence, submission: Submission) -> Evidence | None:
    """What an earlier run found out, if it is about just this submission, or None: then it must be examined.

    It counts where the submission, the assignment, the engine and the images are the same, and was neither a
    failure of ours nor unofficial.
    """
    same = (
        found.submission_digest == submission.digest
        and found.assignment_digest == run.assignment.digest
        and found.engine == __version__
        and found.partial == submission.partial
        # checks alone are asked for: a training that is known already does no harm
        and (run.splits is None or found.data_digest == run.data_digest)
    )
    if not same or found.status == "engine_error" or found.attestation.level == "unofficial":
        return None
    return found


def looks_known(assignment: Assignment, latest: RunRecord, submission: Submission) -> bool:
    """Whether `known_evidence` will most likely find it known; for an estimate, without reading evidence."""
    same = (latest.submission_digest, latest.assignment_digest, latest.engine)
    return same == (submission.digest, assignment.digest, __version__) and latest.status != "engine_error"
