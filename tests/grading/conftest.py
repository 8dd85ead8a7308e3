"""A class of all example uploads, graded once through the real hosts on a few small images."""

import importlib.util
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course.locate import Course, located_course
from grader.domain.assignment import Assignment, DataUse
from grader.gradebook import Gradebook
from grader.grading.class_run import graded
from grader.grading.concurrent_work import Progress
from grader.grading.examiner import OnThisMachine
from grader.grading.hidden_splits import HiddenSplits, SplitKey
from grader.grading.run import Run, running_hosts
from grader.grading.submission_draws import draws_of
from grader.intake import submissions
from grader.kit.splits import Splits
from grader.results.class_files import write_class
from tests.warm_hosts import WarmHosts

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUBMISSIONS = Path(__file__).parents[1] / "submissions"


def upload_builder() -> Any:
    """The module that builds the example uploads."""
    spec = importlib.util.spec_from_file_location("upload_builder", SUBMISSIONS / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def few_images(classes: tuple[str, ...], train: int = 3, test: int = 4) -> HiddenSplits:
    """Images whose class is the height of a bright bar: quick to train on.

    Args:
        classes: Their names.
        train: How many of each class train, in the split of every attempt.
        test: How many are hidden.
    """
    random = np.random.default_rng(7)

    def made(count: int, side: str) -> tuple[Any, Any, tuple[str, ...]]:
        labels = np.repeat(np.arange(len(classes)), count)
        images = random.integers(0, 60, (len(labels), 30, 30)).astype(np.uint8)
        for index, label in enumerate(labels):
            images[index, 5 * label : 5 * label + 5] += 180
        names = tuple(f"{classes[label]}/{side}{index}.png" for index, label in enumerate(labels))
        return images, labels.astype(np.int64), names

    loaded = Splits("few_images", classes, *made(train, "a"), *made(test, "b"))
    use = DataUse(real="few_images", synthetic="few_images", train_share=train / (train + test))
    return HiddenSplits(loaded, SplitKey("secret", "vit_defects", "salt"), use)


@pytest.fixture(scope="session")
def images() -> Callable[..., HiddenSplits]:
    """`few_images`."""
    return few_images


@pytest.fixture(scope="session")
def course(course_root: Path) -> Course:
    """This repository as a course."""
    return located_course(course_root, environment={})


@pytest.fixture(scope="session")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All example uploads, one folder per student."""
    folder = tmp_path_factory.mktemp("class")
    builder = upload_builder()
    builder.build_class(folder, [path.name for path in builder.behaviors()])
    return folder


@pytest.fixture(scope="session")
def run_of_class(
    request: pytest.FixtureRequest,
    course: Course,
    assignment: Assignment,
    class_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    warm_hosts: WarmHosts,
) -> tuple[Path, list[Progress]]:
    """The folder of the class's results, and all progress that was told.

    Graded are the uploads that the tests are about which are asked for.
    """
    out = tmp_path_factory.mktemp("out")
    told: list[Progress] = []
    names = {
        name for item in request.session.items for mark in item.iter_markers("uploads") for name in mark.args
    }
    described = [upload_builder().described(SUBMISSIONS / name) for name in sorted(names)]
    wanted = {one["upload"]["student_id"] for one in described}
    handed_in = submissions(class_folder, assignment, tmp_path_factory.mktemp("scratch")).submissions
    uploads = [one for one in handed_in if one.student_id in wanted]
    with (
        warm_hosts.shared(),
        running_hosts(course, assignment, hidden=(class_folder, out), unofficial=False) as hosts,
    ):
        run = Run(
            partial(draws_of, course, assignment), assignment, few_images(assignment.data.classes), hosts
        )
        with Gradebook(out, assignment_id=assignment.id) as book:
            results = graded(
                OnThisMachine(run), uploads, out, jobs=2, clock=lambda: NOW, book=book, watch=told.append
            )
    write_class(assignment, results, out, NOW)
    return out, told


@pytest.fixture(scope="session")
def results(run_of_class: tuple[Path, list[Progress]]) -> dict[str, Any]:
    """What results.json says, by student id."""
    document = json.loads((run_of_class[0] / "results.json").read_text(encoding="utf-8"))
    return {entry["student_id"]: entry for entry in document["submissions"]}
