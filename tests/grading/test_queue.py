"""What our time limit stops is trained again with more time, when all others are done."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.locate import Course
from grader.domain.analyzed_program import Note
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Training, TrainingOutcome
from grader.domain.submission import Submission
from grader.gradebook import Gradebook
from grader.grading import class_run, examiner
from grader.grading.concurrent_work import GradingStage, Progress
from grader.grading.examiner import OnThisMachine
from grader.grading.hidden_splits import HiddenSplits
from grader.grading.run import EvidenceBuilder, Run, running_hosts
from grader.grading.submission_draws import draws_of
from grader.grading.training_stage import waits_for_more_time
from grader.intake import submissions

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STOPPED = Training(TrainingOutcome.BUDGET, reason="Too long.", projected_seconds=5000.0)
TRAINED = Training(TrainingOutcome.COMPLETED, accuracy=0.9)


@pytest.fixture
def small(tiny_course: Path) -> Assignment:
    """An assignment with a queue of 7200 s."""
    return read_assignment(tiny_course / "reference" / "tiny")


@pytest.mark.parametrize(
    ("training", "queued", "waits"),
    [
        (STOPPED, 7200.0, True),
        (replace(STOPPED, projected_seconds=7201.0), 7200.0, False),
        (replace(STOPPED, projected_seconds=None), 7200.0, False),  # stopped by memory
        (STOPPED, 1800.0, False),
        (TRAINED, 7200.0, False),
        (replace(STOPPED, outcome=TrainingOutcome.FAILED), 7200.0, False),
    ],
)
def test_only_what_fits_the_larger_limit_waits(
    small: Assignment, training: Training, queued: float, waits: bool
) -> None:
    """And only what our time stopped."""
    limits = replace(small.limits, training_seconds=1800.0, queued_training_seconds=queued)
    evidence = Evidence("400101204", "tiny", "", NOW, training=training)
    assert waits_for_more_time(replace(small, limits=limits), evidence) is waits


def test_the_queue_begins_when_all_others_are_done(
    small: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last evidence counts, the first stays; pictures and all else are handed on."""
    order: list[str] = []
    slow = {"400101201", "400101203"}

    def examined(run: Any, submission: Submission, **more: Any) -> EvidenceBuilder:
        order.append(submission.student_id)
        training = STOPPED if submission.student_id in slow else TRAINED
        evidence = Evidence(submission.student_id, "tiny", "0", NOW, notes=(Note("kept"),), training=training)
        return EvidenceBuilder(evidence, {"figure.png": b"picture"})

    def longer(
        run: Any, submission: Submission, earlier: Evidence, images: dict[str, bytes], **more: Any
    ) -> EvidenceBuilder:
        order.append(f"{submission.student_id} again")
        assert (earlier.training, earlier.notes) == (STOPPED, (Note("kept"),))
        assert images == {"figure.png": b"picture"}
        return EvidenceBuilder(replace(earlier, training=TRAINED), dict(images))

    monkeypatch.setattr(examiner, "examined", examined)
    monkeypatch.setattr(examiner, "examined_longer", longer)
    submissions = [Submission(f"40010120{number}", "tiny", (), "0") for number in range(1, 5)]
    clock: Callable[[], datetime] = lambda: NOW  # noqa: E731
    run = cast(Run, SimpleNamespace(assignment=small, splits=object()))
    with Gradebook(tmp_path, assignment_id=small.id) as book:
        results = class_run.graded(
            OnThisMachine(run), submissions, tmp_path, jobs=1, clock=clock, book=book, watch=lambda told: None
        )
    assert order[:4] == [submission.student_id for submission in submissions]
    assert order[4:] == ["400101201 again", "400101203 again"]
    assert [result.evidence.training.outcome for result in results] == [TrainingOutcome.COMPLETED] * 4
    book = Gradebook(tmp_path)
    assert [len(book.runs(submission.student_id)) for submission in submissions] == [2, 1, 2, 1]


@pytest.mark.slow
def test_a_slow_training_is_projected_queued_and_trained_as_a_whole(
    course: Course,
    assignment: Assignment,
    class_folder: Path,
    images: Callable[..., HiddenSplits],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_warm_hosts: None,
) -> None:
    """Through the real hosts: stopped after two epochs of 100 s, as a clock says that is ours, then all."""
    seconds = count(0, 100)
    monkeypatch.setattr(
        "grader.training.training_record.time", SimpleNamespace(monotonic=lambda: next(seconds))
    )
    limits = replace(assignment.limits, training_seconds=1000.0, queued_training_seconds=2000.0)
    hasty = replace(assignment, limits=limits)
    found = submissions(class_folder / "400101201", hasty, tmp_path / "scratch").submissions
    told: list[Progress] = []
    out = tmp_path / "out"
    with running_hosts(course, hasty, hidden=(class_folder, out), unofficial=False) as hosts:
        run = Run(partial(draws_of, course, hasty), hasty, images(hasty.data.classes, train=12), hosts)
        with Gradebook(out, assignment_id=hasty.id) as book:
            results = class_run.graded(
                OnThisMachine(run), found, out, jobs=1, clock=lambda: NOW, book=book, watch=told.append
            )
    book = Gradebook(out)
    first, last = (book.evidence("400101201", number) for number in (1, 2))
    assert first.training.outcome is TrainingOutcome.BUDGET and len(first.training.epochs) == 2
    assert last.training.outcome is TrainingOutcome.COMPLETED and len(last.training.epochs) == 12
    assert (last.findings, last.parameters) == (first.findings, first.parameters)
    assert results[0].evidence == last
    assert any(progress.text == "with more time" for progress in told)
    assert told[-1].stage is GradingStage.DONE
