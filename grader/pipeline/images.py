"""The grader's own images: the hidden split of an assignment's data set."""

import os
import sys
from pathlib import Path

from grader.course.dataset_file import load_dataset
from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.kit.splits import Splits

SYNTHETIC = "synthetic"


def hidden_split(course: Course, assignment: Assignment, data: str) -> Splits:
    """The hidden split of what `--data` names: `synthetic`, or the real data set's zip or folder.

    Raises:
        UsageError: The data cannot be read.
    """
    synthetic = data == SYNTHETIC
    return load_dataset(
        course.datasets,
        assignment.data.synthetic if synthetic else assignment.data.real,
        None if synthetic else Path(data),
        seed=course.split_seed,
        train_share=assignment.data.train_share,
        cache=cache_folder(),
    )


def cache_folder() -> Path:
    """Where decoded images are kept between runs."""
    given = os.environ.get("GRADER_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if given:
        return Path(given) / "vit-grader"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "vit-grader"
    return Path.home() / ".cache" / "vit-grader"
