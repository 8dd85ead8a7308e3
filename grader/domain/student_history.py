"""What the gradebook holds of a student beside the submission that is scored.

It holds the student's attempts, which the rule on resubmissions compares, and the late days that other
assignments of the course have used. It never decides which attempt counts, nor what a late day is worth:
`grader.scoring` does.
"""

from dataclasses import dataclass

from grader.domain.evidence import Evidence


@dataclass(frozen=True)
class Attempt:
    """One submission of the student, as it was examined.

    Attributes:
        evidence: Of the run that counted while this was the newest attempt.
        number: That run's number.
        first_run: The number of the first run of the same files.
    """

    evidence: Evidence
    number: int
    first_run: int

    @property
    def digest(self) -> str:
        """Of the submitted files."""
        return self.evidence.submission_digest


@dataclass(frozen=True)
class History:
    """What a score depends on beside the evidence and what people decided.

    Attributes:
        attempts: The student's attempts for this assignment, in the order in which they were examined first;
            the one that is scored is among them as soon as it is in the gradebook.
        late_days: Other assignment of the same gradebook -> the late days that the student used there.
    """

    attempts: tuple[Attempt, ...] = ()
    late_days: tuple[tuple[str, int], ...] = ()

    def first_run(self, evidence: Evidence) -> int | None:
        """The number of the first run of the same files; None where they are not in the gradebook yet."""
        numbers = (
            attempt.first_run for attempt in self.attempts if attempt.digest == evidence.submission_digest
        )
        return next(numbers, None)


NO_HISTORY = History()
