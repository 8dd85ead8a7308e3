"""All that is drawn from the course's secret for one submission: its values, its seeds, and a key.

Whoever examines a submission needs these, and not the secret that they are drawn from: another machine gets
them with the submission. They are the same on every run, and neither the student nor a worker can work them
out. It examines nothing.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value, submission_seed, training_seed
from grader.domain.errors import EngineError
from grader.domain.submission import Submission

# of one model: three near a threshold, and one for each seed of a study's row
MOST_TRAININGS = 16


@dataclass(frozen=True)
class TrainingSeeds:
    """The seeds of one training.

    Attributes:
        worker: The worker is given it: any random generator accepts it. It does not reveal the next one's.
        order: Of the order in which the trained model is asked, which a worker must not guess.
    """

    worker: int
    order: int


@dataclass(frozen=True)
class SubmissionDraws:
    """What is drawn for one submission.

    Attributes:
        values: The values that the assignment draws, by name.
        checks: The seed of the checks. It does not reveal those of the trainings.
        study_key: Decides which rows of a study are trained again.
    """

    values: Mapping[str, Value]
    checks: int = field(repr=False)
    study_key: str = field(repr=False)
    _trainings: Mapping[str, tuple[TrainingSeeds, ...]] = field(repr=False)

    def training(self, number: int, measure_id: str = "") -> TrainingSeeds:
        """The seeds of a training.

        Args:
            number: Which of the model's trainings, 1-based.
            measure_id: The measure's id, for any model but the first.

        Raises:
            EngineError: No model is trained as often.
        """
        seeds = self._trainings[measure_id]
        if not 1 <= number <= len(seeds):
            raise EngineError(f"No seed was drawn for training {number} of a model: {len(seeds)} were.")
        return seeds[number - 1]


def values_of(course: Course, assignment: Assignment, submission: Submission) -> dict[str, Value]:
    """The values drawn for whoever handed a submission in; for a team, those of the first by id."""
    student_id = submission.team[0] if submission.team else submission.student_id
    return course.values(assignment.id, assignment.variant, student_id) if assignment.variant else {}


def draws_of(course: Course, assignment: Assignment, submission: Submission) -> SubmissionDraws:
    """What is drawn for a submission."""
    secret, digest = course.secret, submission.digest
    further = [measure.id for measure in assignment.measures[1:]]
    return SubmissionDraws(
        values=values_of(course, assignment, submission),
        checks=submission_seed(secret, "checks", digest),
        study_key=hmac.digest(
            secret.encode(), f"study key:{assignment.id}:{submission.student_id}".encode(), "sha256"
        ).hex(),
        _trainings={
            measure_id: tuple(
                TrainingSeeds(
                    training_seed(secret, digest, number, measure_id),
                    submission_seed(secret, f"order {measure_id}".strip(), digest, number),
                )
                for number in range(1, MOST_TRAININGS + 1)
            )
            for measure_id in ("", *further)
        },
    )
