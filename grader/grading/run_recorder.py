"""Writes the record of a grading into its results folder, and stops the grading when that is asked there.

A second grading at the same time goes unrecorded. Grading never fails because nobody can follow it, and
nothing here decides what is graded.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.course.dataset_file import SYNTHETIC
from grader.course.locate import located_course
from grader.domain.errors import GraderError, UsageError
from grader.files import atomic
from grader.files.stored_records import validator
from grader.grading.concurrent_work import Progress, Watcher
from grader.grading.grade_class import GradeRequest, GradeWatcher, TakenIn
from grader.grading.progress_board import Board, workload_sentence
from grader.grading.recorded_run import (
    FOLDER,
    LOCK_VARIABLE,
    REQUESTS,
    RUN,
    STOP,
    RecordedRequest,
    RecordedRun,
    RunPhase,
    UnderWay,
    recorded_requests,
    taken_lock,
)
from grader.grading.time_estimate import Workload

_MOST_REQUESTS = 5
_SECONDS = 1.0  # between two looks


@contextlib.contextmanager
def recorded(
    request: GradeRequest, watch: GradeWatcher, clock: Callable[[], datetime]
) -> Iterator[GradeWatcher]:
    """A watcher that tells another one, and records the grading in the results folder while it lasts.

    It begins with the first thing that is known about the submissions, so that a wrong path leaves no trace;
    at once, if the process was started with the lock.

    Args:
        watch: It is told everything, whether or not anything is recorded.
    """
    recorder = _Recorder(request, watch, clock)
    if descriptor := os.environ.pop(LOCK_VARIABLE, ""):
        recorder.begin(int(descriptor))
    try:
        yield recorder
    except KeyboardInterrupt:
        recorder.end(RunPhase.STOPPED, "It was stopped. What is done is kept: starting it again goes on.")
        raise
    except GraderError as error:
        recorder.end(RunPhase.FAILED, str(error))
        raise
    except BaseException as error:
        recorder.end(RunPhase.FAILED, f"It ended with a fault of the grader: {type(error).__name__}.")
        raise
    else:
        recorder.end(RunPhase.DONE, "It is done.")


class _Recorder:
    """A grading's watcher that writes down what it is told."""

    def __init__(self, request: GradeRequest, watch: GradeWatcher, clock: Callable[[], datetime]) -> None:
        self._request, self._watch, self._clock = request, watch, clock
        self._lock: int | None = None
        self._board: Board | None = None
        self._run: RecordedRun | None = None
        self._written: RecordedRun | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._restore: Callable[[], object] = lambda: None

    @property
    def _folder(self) -> Path:
        return self._request.out / FOLDER

    def begin(self, lock: int | None = None) -> None:
        """Record from now on, unless another grading is recorded at this moment.

        Args:
            lock: Its descriptor, if the process was started with it.
        """
        if self._run is not None:
            return
        if lock is None:
            try:
                lock = taken_lock(self._request.out)
            except (BlockingIOError, UsageError):
                return
        else:
            os.set_inheritable(lock, False)
        self._lock = lock
        started = self._clock()
        self._run = RecordedRun(
            f"{started:%Y%m%d%H%M%S}-{os.getpid()}", self._request.who, started, RunPhase.STARTING
        )
        self._restore = _interrupted_by_request()
        self._write()
        self._thread = threading.Thread(target=self._follow, name="record of the grading", daemon=True)
        self._thread.start()

    def end(self, phase: RunPhase, said: str) -> None:
        """Record how it ended, and give the lock back."""
        if self._run is None:
            return
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._restore()
        self._run = replace(self._now(), phase=phase, said=said, under_way=())
        self._write()
        if self._lock is not None:
            os.close(self._lock)

    def _follow(self) -> None:
        main = threading.main_thread().ident
        while not self._ended.wait(_SECONDS):
            self._write()
            if self._is_to_stop() and main is not None and hasattr(signal, "SIGUSR1"):
                with contextlib.suppress(OSError):
                    (self._folder / STOP).unlink()
                signal.pthread_kill(main, signal.SIGUSR1)  # also if it waits for something

    def _is_to_stop(self) -> bool:
        assert self._run is not None
        try:
            return (self._folder / STOP).read_text(encoding="utf-8") == self._run.id
        except OSError:
            return False

    def _now(self) -> RecordedRun:
        """The record with what the board shows at this moment."""
        assert self._run is not None
        if self._board is None:
            return self._run
        done, share, times = self._board.overall()
        under_way = tuple(
            UnderWay(one.student_id, str(one.stage), one.share, one.text) for one in self._board.under_way()
        )
        return replace(self._run, done=done, share=share, times=times, under_way=under_way)

    def _write(self) -> None:
        """Write the record if it says something new."""
        now = self._now()
        if now != self._written:
            with contextlib.suppress(UsageError):
                atomic.write(self._folder / RUN, validator(RecordedRun).dump_json(now))
            self._written = now

    def _keep_request(self) -> None:
        """Keep what was asked for, before what was asked for earlier."""
        if self._run is None:
            return
        asked = _recorded_request(self._request, self._clock())
        others = [one for one in recorded_requests(self._request.out) if one.path != asked.path]
        kept = (asked, *others)[:_MOST_REQUESTS]
        with contextlib.suppress(UsageError):
            atomic.write(
                self._folder / REQUESTS, validator(tuple[RecordedRequest, ...]).dump_json(kept, indent=1)
            )

    # --- what a watcher is told

    def secret_is_public(self) -> None:
        """The course still has the secret that it was handed out with."""
        self._watch.secret_is_public()

    def taken_in(self, taken_in: TakenIn) -> None:
        """The submissions were read from the path."""
        self.begin()
        self._keep_request()
        self._watch.taken_in(taken_in)

    def starting(self) -> None:
        """PyTorch and the checks are loaded."""
        self._watch.starting()

    @contextlib.contextmanager
    def grading(self, workload: Workload, *, trains: bool) -> Iterator[Watcher]:
        """Submissions are examined."""
        board = Board(workload, trains=trains)
        with self._watch.grading(workload, trains=trains) as watch:

            def note(progress: Progress) -> None:
                board.note(progress)
                watch(progress)

            if self._run is not None:
                self._run = replace(self._run, phase=RunPhase.GRADING, said=workload_sentence(workload))
                self._board = board
            yield note


def _interrupted_by_request() -> Callable[[], object]:
    """Let the signal by which the record asks interrupt the main thread; gives what undoes that."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR1"):
        return lambda: None
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    return lambda: signal.signal(signal.SIGUSR1, before)


def _recorded_request(request: GradeRequest, now: datetime) -> RecordedRequest:
    data = request.data or ""
    return RecordedRequest(
        path=str(request.path.resolve()),
        assignment=request.assignment_id,
        course=str(located_course(request.course).root.resolve()),
        data=data if data in ("", SYNTHETIC) else str(Path(data).resolve()),
        jobs=request.jobs,
        device=request.device,
        extensions=str(request.extensions.resolve()) if request.extensions else "",
        roster=str(request.roster.resolve()) if request.roster else "",
        unofficial=request.unofficial,
        when=now,
        groups=str(request.groups.resolve()) if request.groups else "",
    )
