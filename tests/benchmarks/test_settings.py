"""What a person may set: a number that is none is told, and nothing is trained."""

import math
import time

import pytest

from benchmarks.settings import count, last_beginning


def test_minutes_count_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert last_beginning() == math.inf
    monkeypatch.setenv("MINUTES", "30")
    assert last_beginning() == pytest.approx(time.monotonic() + 1800, abs=60)
    monkeypatch.setenv("MINUTES", "0")
    assert last_beginning() <= time.monotonic()


@pytest.mark.parametrize("written", ["1h", "", "nan"])
def test_minutes_that_are_no_number_are_refused(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("MINUTES", written)
    with pytest.raises(SystemExit, match=f"MINUTES is a number, as in MINUTES=30, not '{written}'"):
        last_beginning()


def test_how_many_is_a_whole_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count("PROCESSES", 3) == 3
    monkeypatch.setenv("PROCESSES", "12")
    assert count("PROCESSES", 3) == 12
    monkeypatch.setenv("PROCESSES", "two")
    with pytest.raises(SystemExit, match="PROCESSES is a whole number above 0, as in PROCESSES=3, not 'two'"):
        count("PROCESSES", 3)
