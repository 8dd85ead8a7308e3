"""Deadlines: called once when their time is over, and never after their block."""

import multiprocessing
import threading
import time
from collections.abc import Callable

import pytest

from grader.protocol import deadlines
from grader.protocol.deadlines import Deadline, busy_factor

SOON, LONG = 0.05, 60.0


class Calls:
    """Something to call, which says when it was."""

    def __init__(self) -> None:
        self.count = 0
        self.made = threading.Event()

    def __call__(self) -> None:
        self.count += 1
        self.made.set()


@pytest.fixture
def calls() -> Callable[[], Calls]:
    """Things to call."""
    return Calls


def test_it_is_called_once_when_the_time_is_over(calls: Callable[[], Calls]) -> None:
    call = calls()
    with Deadline(SOON, call) as deadline:
        assert call.made.wait(10)
        time.sleep(2 * SOON)
    assert deadline.expired and call.count == 1


def test_it_is_not_called_after_its_block(calls: Callable[[], Calls]) -> None:
    call = calls()
    with Deadline(SOON, call) as deadline:
        pass
    time.sleep(4 * SOON)
    assert not deadline.expired and call.count == 0


def test_an_earlier_one_is_not_kept_waiting_by_a_later_one(calls: Callable[[], Calls]) -> None:
    late, early = calls(), calls()
    with Deadline(LONG, late), Deadline(SOON, early):
        assert early.made.wait(10)
    assert late.count == 0


def test_a_busy_machine_shortens_no_limit(
    calls: Callable[[], Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = calls()
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 3.5)
    with Deadline(0.2, call) as deadline:
        assert not call.made.wait(0.5)
    assert not deadline.expired and deadline.granted == pytest.approx(0.5)


def test_a_limit_is_not_extended_for_ever(
    calls: Callable[[], Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = calls()
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 1000.0)
    with Deadline(SOON, call) as deadline:
        assert call.made.wait(10)
    assert deadline.expired and deadline.granted == pytest.approx(deadlines.MOST_TIMES * SOON)


def test_a_training_is_extended_by_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 1000.0)
    assert Deadline(1200.0, lambda: None).extension() == deadlines.MOST_GRANTED


def test_a_good_third_of_a_processor_is_enough(
    calls: Callable[[], Calls], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 2.9)
    assert Deadline(1.0, calls()).extension() == 0


def test_how_busy_a_machine_is_can_be_measured() -> None:
    """Two threads that hold the interpreter's lock in turns take about twice as long as one."""
    assert busy_factor() >= 1.0
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    threads = [threading.Thread(target=spin) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert max(busy_factor() for _ in range(5)) > 1.5
    finally:
        stop.set()


def test_many_cost_one_thread(calls: Callable[[], Calls]) -> None:
    with Deadline(LONG, calls()):
        before = threading.active_count()
        for _ in range(50):
            with Deadline(LONG, calls()):
                pass
        deadlines = [Deadline(LONG, calls()) for _ in range(20)]
        for deadline in deadlines:
            deadline.__enter__()
        assert threading.active_count() == before
        for deadline in deadlines:
            deadline.__exit__(None, None, None)


def test_one_that_cannot_be_called_leaves_the_others(calls: Callable[[], Calls]) -> None:
    def fails() -> None:
        raise ProcessLookupError

    call = calls()
    with Deadline(SOON, fails), Deadline(2 * SOON, call):
        assert call.made.wait(10)


def _expires(told: "multiprocessing.queues.Queue[bool]") -> None:
    made = threading.Event()
    with Deadline(SOON, made.set):
        told.put(made.wait(10))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="a system without forks")
def test_a_fork_has_a_thread_of_its_own(calls: Callable[[], Calls]) -> None:
    context = multiprocessing.get_context("fork")
    with Deadline(LONG, calls()):
        told = context.Queue()
        child = context.Process(target=_expires, args=(told,))
        child.start()
        assert told.get(timeout=20)
        child.join(20)


@pytest.mark.parametrize(
    ("seconds", "granted", "factor", "remains"),
    [
        (10.0, 40.0, 3.5, True),
        (10.0, 40.0, 2.5, False),  # it is at rest again
        (10.0, 22.0, 3.5, False),  # not all was added that may be
        (100.0, deadlines.MOST_GRANTED, 3.5, True),
        (0.1, 0.4, 100.0, False),  # too short to tell
    ],
)
def test_a_machine_remains_busy_when_all_was_added(
    monkeypatch: pytest.MonkeyPatch, seconds: float, granted: float, factor: float, remains: bool
) -> None:
    monkeypatch.setattr(deadlines, "busy_factor", lambda: factor)
    assert deadlines.remains_busy(seconds, granted) is remains
