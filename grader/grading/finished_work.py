"""Work that was done before: what nothing has changed about is not done again."""

from grader import __version__
from grader.domain.evidence import Evidence
from grader.domain.submission import Submission
from grader.gradebook import RunRecord
from grader.grading.own_values import values_of
from grader.grading.run import Run


def is_known(run: Run, found: Evidence, submission: Submission) -> bool:
    """Whether what an earlier run found out is about just this submission: else it must be examined.

    It counts where the submission, the assignment, the drawn values, the engine and the images are the same,
    and was neither a failure of ours nor unofficial.
    """
    return (
        _is_same(run, found, submission)
        and found.variant == values_of(run, submission)
        and found.partial == submission.partial
        # checks alone are asked for: a training that is known already does no harm
        and (run.splits is None or run.splits.are_those_of(found))
        and found.attestation.level != "unofficial"
    )


def may_be_known(run: Run, record: RunRecord, submission: Submission) -> bool:
    """Whether `is_known` may say so, by what can be asked without reading evidence: if not, it will not."""
    never_trained = record.data_digest == ""
    return _is_same(run, record, submission) and (run.splits is None or not never_trained)


def _is_same(run: Run, found: Evidence | RunRecord, submission: Submission) -> bool:
    same = (found.submission_digest, found.assignment_digest, found.engine)
    wanted = (submission.digest, run.assignment.digest, __version__)
    return same == wanted and found.status != "engine_error"
