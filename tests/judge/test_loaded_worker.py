"""The limit on all questions to a worker together, and what a busy machine adds to it."""

import contextlib
from collections.abc import Callable

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.judge.loaded_worker import LoadedWorker
from grader.protocol import deadlines
from grader.protocol.deadlines import BusyMachineError
from grader.protocol.link import WorkerProcess

LIMIT = 60.0
SPIN = "import time\n\nclass Spins:\n    while time.process_time() < 1.2:\n        pass\n"


@pytest.fixture
def worker(
    assignment: Assignment, analyzed: Callable[[str], Program], spawn: Callable[[], WorkerProcess]
) -> LoadedWorker:
    """A worker that is not started."""
    return LoadedWorker(spawn, analyzed("value = 1"), assignment)


def busy(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    monkeypatch.setattr(deadlines, "busy_factor", lambda: factor)


def test_within_its_time_nothing_is_measured(worker: LoadedWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(deadlines, "busy_factor")
    worker.waited = LIMIT
    assert not worker.is_out_of_time(LIMIT)


def test_an_idle_machine_adds_nothing(worker: LoadedWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(monkeypatch, 2.9)
    worker.waited = LIMIT + 1
    assert worker.is_out_of_time(LIMIT)


def test_a_busy_machine_adds_a_minute_in_all(worker: LoadedWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(monkeypatch, 6.0)
    worker.waited = LIMIT + 1
    assert not worker.is_out_of_time(LIMIT)
    worker.waited = LIMIT + deadlines.MOST_GRANTED
    assert not worker.is_out_of_time(LIMIT)
    busy(monkeypatch, 1.0)
    worker.waited += 1
    assert worker.is_out_of_time(LIMIT)


def test_what_is_out_of_time_remains_so(worker: LoadedWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else some of the remaining checks would be tried, as chance has it."""
    busy(monkeypatch, 1.0)
    worker.waited = LIMIT + 1
    assert worker.is_out_of_time(LIMIT)
    busy(monkeypatch, 6.0)
    assert worker.is_out_of_time(LIMIT)


def test_a_machine_that_remains_busy_is_to_blame(
    worker: LoadedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(monkeypatch, 6.0)
    worker.waited = LIMIT + deadlines.MOST_GRANTED + 1
    assert not worker.is_out_of_time(LIMIT)
    with pytest.raises(BusyMachineError):
        _ = worker.link


@pytest.mark.parametrize(
    ("source", "out_of_time"), [(SPIN, True), ("value = 1", False)], ids=["it did", "it did not"]
)
def test_what_computed_as_long_as_it_may_was_tried(
    assignment: Assignment,
    analyzed: Callable[[str], Program],
    spawn: Callable[[], WorkerProcess],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    out_of_time: bool,
) -> None:
    """However busy the machine; a call that hung is not part of it."""
    with contextlib.closing(LoadedWorker(spawn, analyzed(source), assignment)) as worker:
        _ = worker.link
        busy(monkeypatch, 6.0)
        worker.waited = 5.1
        assert worker.is_out_of_time(1.0) is out_of_time
