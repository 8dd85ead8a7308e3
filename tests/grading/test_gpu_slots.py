"""A GPU is shared by as many trainings as its memory holds; one that needs more is alone on it."""

import subprocess
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.evidence import Checkpoint, Evidence, Training, TrainingOutcome
from grader.domain.submission import Intake
from grader.grading import training_stage
from grader.grading.concurrent_work import DeviceSlots
from grader.grading.devices import device_slots
from grader.grading.run import EvidenceBuilder, Run
from grader.kit.splits import Splits
from grader.training import Job, Measured

MOMENT = 0.02  # seconds


def together(slots: DeviceSlots, wishes: list[bool]) -> list[tuple[int, bool]]:
    """How many were there when each came, itself included, and whether it wanted to be alone."""
    there, seen = 0, []
    lock = threading.Lock()

    def train(alone: bool) -> None:
        nonlocal there
        with slots.taken(alone=alone):
            with lock:
                there += 1
                seen.append((there, alone))
            time.sleep(MOMENT)
            with lock:
                there -= 1

    threads = [threading.Thread(target=train, args=(alone,)) for alone in wishes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(seen) == len(wishes), "none waits for ever"
    return seen


def test_no_more_train_at_once_than_there_are_places() -> None:
    assert max(there for there, _ in together(DeviceSlots(3), [False] * 9)) == 3
    assert max(there for there, _ in together(DeviceSlots(), [False] * 9)) > 3, (
        "processors are not counted here"
    )


def test_who_wants_to_be_alone_is_and_nobody_waits_for_ever() -> None:
    seen = together(DeviceSlots(3), [False, False, True, False, True, False, False])
    assert {there for there, alone in seen if alone} == {1}
    slots = DeviceSlots(2)
    with slots.taken(), slots.taken():
        alone = threading.Thread(target=lambda: together(slots, [True]))
        alone.start()
        time.sleep(MOMENT)
        # the places that become free are kept for the one that waits
        assert not slots._is_free(alone=False)
    alone.join(timeout=20)
    assert not alone.is_alive()


def test_a_place_is_given_back_when_a_training_fails() -> None:
    slots = DeviceSlots(1)
    for alone in (False, True):
        with pytest.raises(RuntimeError), slots.taken(alone=alone):
            raise RuntimeError
    assert slots._is_free(alone=True) and slots._is_free(alone=False)


@pytest.mark.parametrize(
    ("told", "places"), [("81000\n", 19), ("5000\n", 1), ("100\n", 1), ("[N/A]\n", 1), ("", 1)]
)
def test_the_free_memory_says_how_many_places_there_are(
    monkeypatch: pytest.MonkeyPatch, told: str, places: int
) -> None:
    def run(command: list[str], **_: Any) -> Any:
        if not told:
            raise FileNotFoundError(command[0])
        return SimpleNamespace(stdout=told)

    monkeypatch.setattr(subprocess, "run", run)
    assert device_slots("cuda", 4000).places == places
    assert device_slots("cpu", 4000).places is None


@pytest.mark.parametrize(
    ("visible", "asked"), [(None, "0"), ("1", "1"), (" 2, 0", "2"), ("GPU-8932f937,GPU-1", "GPU-8932f937")]
)
def test_the_memory_of_the_gpu_that_is_used_counts(
    visible: str | None, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several, the operator or a cluster chooses one for each process."""
    free = {"0": "500\n", asked: "81000\n"}

    def run(command: list[str], **_: Any) -> Any:
        return SimpleNamespace(stdout=free[command[-1].removeprefix("--id=")])

    monkeypatch.setattr(subprocess, "run", run)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert device_slots("cuda", 4000).places == 19


def test_what_needs_more_than_its_part_is_trained_again_alone(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of the memory; what it came to alone is what counts."""
    jobs: list[tuple[int | None, int]] = []
    slots = DeviceSlots(3)

    def trained(workers: Callable[[], Any], numbered: Callable[[int], Job], *_: Any, **__: Any) -> Measured:
        job = numbered(1)
        jobs.append((job.gpu_memory_mb, slots._training))
        if job.gpu_memory_mb is not None:
            return Measured(
                Training(TrainingOutcome.BUDGET, reason="Too little."), {}, lacked_gpu_memory=True
            )
        return Measured(Training(TrainingOutcome.COMPLETED, accuracy=0.9), {})

    monkeypatch.setattr(training_stage, "repeated_training", trained)
    run = cast("Run", SimpleNamespace(assignment=assignment, device_slots=slots, device="cuda"))
    found = EvidenceBuilder(Evidence("400101201", assignment.id, "", datetime(2026, 1, 2, tzinfo=UTC)))
    job = Job(
        cast("Any", None), assignment.limits, splits=cast("Splits", None), device="cuda", gpu_memory_mb=4000
    )
    model = training_stage._Model(
        run, assignment.measures[0], lambda number: job, found, lambda told: None, True
    )
    model._measure(model.jobs)
    assert jobs == [(4000, 1), (None, 3)]
    assert found.evidence.training.accuracy == 0.9
    assert slots._is_free(alone=True)


def test_weights_that_are_tried_take_a_place(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They need memory as well: whoever trains alone is alone."""
    slots, taken = DeviceSlots(3), []

    def tried(*_: Any) -> Checkpoint:
        taken.append(slots._training)
        return Checkpoint("fits", accuracy=0.9)

    monkeypatch.setattr(training_stage._Model, "_rehearse", lambda *_: None)
    monkeypatch.setattr(training_stage._Model, "_measure", lambda *_: None)
    monkeypatch.setattr(training_stage, "measured_checkpoint", tried)
    monkeypatch.setattr(
        training_stage, "_jobs", lambda *_: lambda number: SimpleNamespace(limits=assignment.limits)
    )
    run = cast("Run", SimpleNamespace(assignment=assignment, device_slots=slots, device="cuda"))
    weights = tmp_path / "400101201.pth"
    weights.write_bytes(b"")
    files = cast("Intake", SimpleNamespace(submission=None, checkpoint=weights))
    found = EvidenceBuilder(Evidence("400101201", assignment.id, "", datetime(2026, 1, 2, tzinfo=UTC)))
    program = Program("homework.py")
    training_stage.train(run, cast("Splits", None), program, files, found, lambda progress: None)
    assert taken == [1] and found.evidence.checkpoint.accuracy == 0.9
