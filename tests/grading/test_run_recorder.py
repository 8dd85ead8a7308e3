"""The record of a grading: others follow it, ask for the same again, and stop it; there is one at a time."""

import contextlib
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from grader.cli import cli
from grader.cli.grading_commands import grade_command
from grader.domain.errors import UsageError
from grader.grading.concurrent_work import GradingStage, Progress
from grader.grading.grade_class import GradeRequest
from grader.grading.recorded_run import (
    FOLDER,
    LOCK_VARIABLE,
    REQUESTS,
    RUN,
    RunPhase,
    ask_to_stop,
    is_recording,
    last_run,
    recorded_requests,
    taken_lock,
)
from grader.grading.run_recorder import recorded
from grader.grading.time_estimate import Workload

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


class Told:
    """A watcher that notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def taken_in(self, taken_in: Any) -> None:
        self.heard.append(taken_in)

    @contextlib.contextmanager
    def grading(self, workload: Workload, *, trains: bool) -> Any:
        yield self.heard.append


@pytest.fixture
def request_(tmp_path: Path, course_root: Path) -> GradeRequest:
    (tmp_path / "download.zip").write_bytes(b"")
    return GradeRequest(
        path=tmp_path / "download.zip",
        assignment_id="vit_defects",
        out=tmp_path / "results",
        who="head",
        data="synthetic",
        jobs=3,
        device="cpu",
        course=course_root,
        roster=tmp_path / "list.csv",
        groups=tmp_path / "groups.csv",
        only=("400101204",),
        force=True,
    )


def clock() -> datetime:
    return NOW


def test_others_see_how_far_it_is_and_how_it_ended(request_: GradeRequest) -> None:
    told = Told()
    with recorded(request_, told, clock) as watch:  # type: ignore[arg-type]
        assert last_run(request_.out) is None, "a wrong path leaves no trace"
        watch.taken_in("what was handed in")  # type: ignore[arg-type]
        assert is_recording(request_.out)
        with watch.grading(Workload(4, 0, 3, {}), trains=False) as note:
            note(Progress("400101201", GradingStage.DONE))
            note(Progress("400101202", GradingStage.CHECKS, 0.5, "22 of 44 checks"))
            for _ in range(100):
                if (seen := last_run(request_.out)) and seen.under_way:
                    break
                time.sleep(0.1)
            assert seen is not None and seen.phase is RunPhase.GRADING and seen.who == "head"
            assert seen.done == "1 of 4 done" and 0.25 < seen.share < 0.5 and "left" in seen.times
            assert [one.student_id for one in seen.under_way] == ["400101202"]
            assert "4\u00a0submissions to grade" in seen.said
            note(replace(Progress("400101202", GradingStage.DONE)))
    ended = last_run(request_.out)
    assert ended is not None and ended.phase is RunPhase.DONE and ended.done == "2 of 4 done"
    assert not is_recording(request_.out) and len(told.heard) == 4, "the other watcher was told everything"


def test_what_was_asked_for_can_be_asked_again(request_: GradeRequest, tmp_path: Path) -> None:
    with recorded(request_, Told(), clock) as watch:  # type: ignore[arg-type]
        watch.taken_in("")  # type: ignore[arg-type]
    [kept] = recorded_requests(request_.out)
    words = kept.words(request_.out)
    # a command keeps its help option once it is made, so it is made here as it is in the program
    names = cli.context_settings["help_option_names"]
    parent = click.Context(cli, info_name="grader", help_option_names=names)
    asked = grade_command.make_context("grade", [*words[1:], "--", kept.path], parent=parent).params
    assert words[0] == "grade"
    places = ("path", "out", "course", "roster", "groups", "extensions")
    for name in (*places, "assignment_id", "data", "jobs", "device"):
        assert asked[name] == getattr(request_, name), name
    assert not asked["no_train"] and asked["only"] == () and not asked["force"] and not asked["allow_lower"]
    other = replace(request_, path=tmp_path / "late.zip", data=None)
    with recorded(other, Told(), clock) as watch:  # type: ignore[arg-type]
        watch.taken_in("")  # type: ignore[arg-type]
    latest, before = recorded_requests(request_.out)
    assert latest.path.endswith("late.zip") and "--no-train" in latest.words(request_.out) and before == kept
    text = (request_.out / FOLDER / REQUESTS).read_text(encoding="utf-8")
    assert "gradebook" not in text, "its URL may hold a password"


def test_a_second_one_goes_on_unrecorded(request_: GradeRequest) -> None:
    with recorded(request_, Told(), clock) as watch:  # type: ignore[arg-type]
        watch.taken_in("")  # type: ignore[arg-type]
        first = last_run(request_.out)
        told = Told()
        other = replace(request_, who="ta1")
        with recorded(other, told, clock) as second:  # type: ignore[arg-type]
            second.taken_in("x")  # type: ignore[arg-type]
            with second.grading(Workload(1, 0, 1, {}), trains=False):
                pass
        assert last_run(request_.out) == first and told.heard == ["x"]


@pytest.mark.slow
def test_it_stops_when_that_is_asked_of_this_run(request_: GradeRequest) -> None:
    def graded() -> None:
        with recorded(request_, Told(), clock) as watch:  # type: ignore[arg-type]
            watch.taken_in("")  # type: ignore[arg-type]
            run = last_run(request_.out)
            assert run is not None
            ask_to_stop(request_.out, "another run")
            time.sleep(1.5)
            ask_to_stop(request_.out, run.id)
            time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        graded()
    ended = last_run(request_.out)
    assert ended is not None and ended.phase is RunPhase.STOPPED and "What is done is kept" in ended.said


def test_an_error_is_recorded_as_it_was_said(request_: GradeRequest) -> None:
    def graded() -> None:
        with recorded(request_, Told(), clock) as watch:  # type: ignore[arg-type]
            watch.taken_in("")  # type: ignore[arg-type]
            raise UsageError("The disk is full. Make room.")

    with pytest.raises(UsageError):
        graded()
    ended = last_run(request_.out)
    assert ended is not None and (ended.phase, ended.said) == (
        RunPhase.FAILED,
        "The disk is full. Make room.",
    )


def test_a_process_that_was_started_with_the_lock_records_from_the_beginning(
    request_: GradeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = taken_lock(request_.out)
    with pytest.raises(BlockingIOError):
        taken_lock(request_.out)
    monkeypatch.setenv(LOCK_VARIABLE, str(lock))
    with recorded(request_, Told(), clock):  # type: ignore[arg-type]
        run = last_run(request_.out)
        assert run is not None and run.phase is RunPhase.STARTING
        assert LOCK_VARIABLE not in os.environ and not os.get_inheritable(lock)
    assert not is_recording(request_.out)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"id": 1}'])
def test_a_damaged_record_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FOLDER).mkdir()
    for name in (REQUESTS, RUN):
        (tmp_path / FOLDER / name).write_bytes(content)
    assert recorded_requests(tmp_path) == () and last_run(tmp_path) is None
