"""The job of a measure: a training as the program trains, or by a call."""

from typing import Any

import numpy as np

from grader.course.measure_functions import measure_function
from grader.domain.assignment import Assignment, trainers
from grader.domain.measure import Measure
from grader.kit.splits import Examples, Splits
from grader.training.own_measure import score_of
from grader.training.training_job import CalledJob, Job


def job_of(
    assignment: Assignment, measure: Measure, data: Splits | Examples, **execution: Any
) -> Job | CalledJob:
    """What is trained for a measure.

    Args:
        data: What it is trained and measured on.
        execution: The fields of `Execution`, but for the assignment's id.

    Raises:
        CourseError: The measure's function cannot be had.
    """
    execution["assignment"] = assignment.id
    score = score_of(measure_function(assignment, measure), measure.id) if measure.function else None
    if measure.call is None:
        assert isinstance(data, Splits)  # `course` lets arrays be measured by calls alone
        return Job(splits=data, score=score, **execution)
    if isinstance(data, Examples):
        return CalledJob(examples=data, call=measure.call, score=score, **execution)
    return CalledJob(
        examples=images_as_examples(data),
        call=measure.call,
        trainer=next(iter(trainers(assignment.components, measure.roles)), ""),
        score=score,
        scaled=True,
        splits=data,
        **execution,
    )


def images_as_examples(splits: Splits) -> Examples:
    """Images as inputs, uint8 (n, channels, height, width), with their labels as targets."""
    return Examples(
        splits.name,
        _channels_first(splits.train_images),
        splits.train_labels,
        _channels_first(splits.test_images),
        splits.test_labels,
    )


def _channels_first(images: Any) -> Any:
    return images[:, None] if images.ndim == 3 else np.ascontiguousarray(np.moveaxis(images, -1, 1))
