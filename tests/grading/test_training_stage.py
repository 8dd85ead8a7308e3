"""What a submission's trainings are given, and what of them is kept."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.course.locate import Course
from grader.domain.analyzed_program import Note, Program
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Training, TrainingOutcome, UnfinishedRun
from grader.domain.measure import Measure
from grader.domain.submission import Submission
from grader.grading import training_stage
from grader.grading.concurrent_work import DeviceSlots
from grader.grading.run import EvidenceBuilder, Run
from grader.grading.submission_draws import draws_of
from grader.grading.training_stage import waits_for_more_time
from grader.training import Job, Measured, made_up_images

COURSE = Course(Path(), "t", "secret")
SPLITS = made_up_images(("a", "b"), (2, 2))
EVIDENCE = Evidence("400101204", "vit_defects", "ab12", datetime(2026, 1, 2, tzinfo=UTC))


def model(run: Run, jobs: Callable[[int], Job], found: EvidenceBuilder) -> training_stage._Model:
    """The only model of a submission."""
    return training_stage._Model(
        run, Measure("test_accuracy"), jobs, found, lambda progress: None, is_first=True
    )


def jobs(
    assignment: Assignment, source: bytes, secret: str = "secret", further: str = ""
) -> Callable[[int], Job]:
    """The jobs of a file's trainings."""
    digest = hashlib.sha256(source).hexdigest()
    if further:
        assignment = replace(assignment, measures=(assignment.measures[0], Measure(further)))
    run = cast(
        Run,
        SimpleNamespace(
            draw=partial(draws_of, replace(COURSE, secret=secret), assignment),
            assignment=assignment,
            device="cpu",
        ),
    )
    submission = Submission("400101204", assignment.id, (), digest)
    measure = assignment.measures[-1] if further else assignment.measures[0]
    made = training_stage._jobs(run, cast(Any, SPLITS), Program("homework.py"), submission, measure)
    return cast("Callable[[int], Job]", made)


def test_each_training_has_seeds_of_its_own_that_only_the_secret_tells(assignment: Assignment) -> None:
    """What its worker is told, and what it must not know: the order of the images."""
    own, other = jobs(assignment, b"source"), jobs(assignment, b"source", "another")
    every = [job(number) for job in (own, other) for number in (1, 2, 3)]
    assert len({job.seed for job in every}) == len({job.order_seed for job in every}) == 6
    assert all(0 <= job.seed < 2**31 for job in every)
    assert own(2).seed == jobs(assignment, b"source")(2).seed, "the same whenever it is trained"
    digest = hashlib.sha256(b"source").hexdigest()
    known = int.from_bytes(hashlib.sha256(digest.encode()).digest()[:4], "big") >> 1
    assert not {known, known + 1, known + 2} & {job.seed for job in every}


def test_a_number_in_a_comment_chooses_no_seed(assignment: Assignment) -> None:
    """A student could try comments until the digest gave a first seed that the code knows again."""
    nonces = [
        nonce
        for nonce in range(400)
        if not (
            int.from_bytes(
                hashlib.sha256(hashlib.sha256(b"# %d" % nonce).hexdigest().encode()).digest()[:4], "big"
            )
            >> 1
        )
        % 4
    ]
    hits = [[jobs(assignment, b"# %d" % nonce)(run).seed % 4 == 0 for run in (1, 2, 3)] for nonce in nonces]
    assert len(hits) > 60
    shares = [sum(hit[run] for hit in hits) / len(hits) for run in range(3)]
    assert all(0.05 < share < 0.5 for share in shares), "a quarter each: as good as no choice"


def test_what_a_worker_that_trains_says_is_kept_apart_from_the_reports_notes(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had seen which images train, and could tell which they are."""
    told = Measured(Training(TrainingOutcome.COMPLETED, accuracy=0.9), {}, (Note("3Pr++/Xa/9n8."),) * 2)
    monkeypatch.setattr(training_stage, "repeated_training", lambda *_, **__: told)
    run = cast(Run, SimpleNamespace(assignment=assignment, device_slots=DeviceSlots(1), device="cpu"))
    found = EvidenceBuilder(replace(EVIDENCE, notes=(Note("Of the files."),)))
    job = Job(cast(Any, None), assignment.limits, splits=cast(Any, None))
    model(run, lambda _: job, found)._measure(lambda number: job)
    assert found.evidence.notes == (Note("Of the files."),)
    assert found.evidence.training.notes == (Note("3Pr++/Xa/9n8."),)


@pytest.mark.parametrize(
    ("first", "repetitions", "waits"),
    [
        ((TrainingOutcome.BUDGET, 4000.0), (), True),
        ((TrainingOutcome.BUDGET, 9000.0), (), False),
        ((TrainingOutcome.BUDGET, None), (), False),
        ((TrainingOutcome.COMPLETED, None), (), False),
        ((TrainingOutcome.COMPLETED, None), ((TrainingOutcome.BUDGET, 4000.0),), True),
        ((TrainingOutcome.COMPLETED, None), ((TrainingOutcome.FAILED, None),), False),
        (
            (TrainingOutcome.COMPLETED, None),
            ((TrainingOutcome.BUDGET, 4000.0), (TrainingOutcome.BUDGET, 9000.0)),
            False,
        ),
    ],
)
def test_a_repetition_that_our_limit_stopped_gets_more_time_too(
    assignment: Assignment,
    first: tuple[TrainingOutcome, float | None],
    repetitions: tuple[tuple[TrainingOutcome, float | None], ...],
    waits: bool,
) -> None:
    """It is not a fault of the student's that it was slower than the first one."""
    limits = replace(assignment.limits, training_seconds=1800.0, queued_training_seconds=7200.0)
    unfinished = tuple(
        UnfinishedRun(number, outcome, "", projected_seconds=seconds)
        for number, (outcome, seconds) in enumerate(repetitions, 2)
    )
    training = Training(first[0], projected_seconds=first[1], unfinished=unfinished)
    evidence = replace(EVIDENCE, training=training)
    assert waits_for_more_time(replace(assignment, limits=limits), evidence) is waits
    off = replace(assignment, limits=replace(limits, queued_training_seconds=1800.0))
    assert not waits_for_more_time(off, evidence)


def test_further_models_have_seeds_of_their_own(assignment: Assignment) -> None:
    first, second = jobs(assignment, b"source"), jobs(assignment, b"source", further="resnet")
    assert {first(1).seed, first(1).order_seed}.isdisjoint({second(1).seed, second(1).order_seed})
