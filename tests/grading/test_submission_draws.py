"""What is drawn for a submission: the same on every machine, and nothing that another one's would reveal."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import submission_seed, training_seed
from grader.domain.errors import EngineError
from grader.domain.measure import Measure
from grader.domain.submission import Submission
from grader.grading.study_reproduction import FURTHER_SEEDS
from grader.grading.submission_draws import MOST_TRAININGS, draws_of
from grader.training.measured_training import RUNS

COURSE = Course(Path("course"), "Course", "the secret")
ONE = Submission("1", "any", (), "digest")


@pytest.fixture
def two_models(assignment: Assignment) -> Assignment:
    """An assignment that measures a second model."""
    return replace(assignment, measures=(assignment.measures[0], Measure("second")))


def test_the_seeds_are_those_that_the_secret_gives(two_models: Assignment) -> None:
    draws = draws_of(COURSE, two_models, ONE)
    assert draws.checks == submission_seed("the secret", "checks", "digest")
    assert draws.training(2).worker == training_seed("the secret", "digest", 2)
    assert draws.training(2, "second").worker == training_seed("the secret", "digest", 2, "second")
    assert draws.training(2).order == submission_seed("the secret", "order", "digest", 2)
    assert draws.training(2, "second").order == submission_seed("the secret", "order second", "digest", 2)


def test_each_student_has_a_key_for_the_rows_of_a_study(two_models: Assignment) -> None:
    keys = {
        draws_of(course, two_models, replace(ONE, student_id=student)).study_key
        for course in (COURSE, replace(COURSE, secret="another"))
        for student in ("1", "2")
    }
    assert len(keys) == 4


def test_nothing_drawn_shows_the_secret(two_models: Assignment) -> None:
    draws = draws_of(COURSE, two_models, ONE)
    assert "the secret" not in str(vars(draws))
    assert str(draws.checks) not in repr(draws) and draws.study_key not in repr(draws)


def test_there_are_seeds_for_every_training_and_no_more(two_models: Assignment) -> None:
    draws = draws_of(COURSE, two_models, ONE)
    assert max(RUNS, 1 + FURTHER_SEEDS) <= MOST_TRAININGS
    draws.training(MOST_TRAININGS)
    for number in (0, MOST_TRAININGS + 1):
        with pytest.raises(EngineError, match=f"training {number} of a model"):
            draws.training(number)
