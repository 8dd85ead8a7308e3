"""Which attempt a submission is: it decides the hidden images that its training meets."""

from collections.abc import Sequence

from grader.domain.evidence import Evidence, TrainingOutcome
from grader.domain.submission import Submission
from grader.gradebook import Gradebook


def attempt_number(book: Gradebook, submission: Submission) -> int:
    """One more than the submissions of the student that were trained before; the same one keeps its number.

    An attempt is a submission (its digest) that was trained: what was superseded within a download, only
    checked, or cut off before it was recorded, told nobody anything. What a team hands in is an attempt of
    each of them, whoever it was trained for, and is numbered beyond what any of them had.

    Args:
        book: Where the attempts are recorded.
        submission: What is about to be trained.
    """
    members = dict.fromkeys((submission.student_id, *submission.team))
    known = [attempts(book.history(student_id)) for student_id in members]
    for numbers in known:
        if submission.digest in numbers:
            return numbers[submission.digest]
    return 1 + max(max(numbers.values(), default=0) for numbers in known)


def attempts(history: Sequence[tuple[str, Evidence | None]]) -> dict[str, int]:
    """The digests of the submissions that were trained -> their numbers.

    Args:
        history: A student's runs, oldest first: the submission's digest and what was found out, which is
            None where nobody can read it any more. Then it may have been trained.
    """
    numbers: dict[str, int] = {}
    for digest, found in history:
        if found is None or found.training.outcome is not TrainingOutcome.NOT_RUN:
            # a grader with one split for all wrote no number
            number = (found and found.attempt) or 1 + max(numbers.values(), default=0)
            numbers.setdefault(digest, number)
    return numbers
