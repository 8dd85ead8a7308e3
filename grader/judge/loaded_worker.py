"""A worker with the submission loaded: it is started when it is needed, and replaced when it dies.

It applies the time limit on loading, proves that the watch for forbidden parts works, and adds up how long
the worker took to answer. It takes what loading yields as untrusted. A submission that did not load is not
loaded again. What is asked of it, and what an answer is worth, `grader.judge.student` and the checks decide.

Tests: tests/judge/test_loaded_worker.py, tests/judge/test_examination.py, tests/judge/test_lies.py
"""

import contextlib
import secrets
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import EngineError
from grader.domain.evidence import Attestation
from grader.domain.program_run import NOTHING_SEEN, Watched
from grader.judge import untrusted_replies
from grader.protocol.deadlines import BusyMachineError, extension, remains_busy
from grader.protocol.frames import FrameLimit
from grader.protocol.link import Link, WorkerFault, WorkerProcess
from grader.protocol.replies import Loaded
from grader.protocol.requests import Load
from grader.protocol.worker_reports import WatchRecord

REPLY_LIMIT = FrameLimit(document=8_000_000, arrays=256_000_000)

Answers = Mapping[type[Any], Callable[[Any], Any]]


class LoadedWorker:
    """A worker in which a submission is loaded.

    Attributes:
        attestation: What isolates the worker; None while none was needed.
        loaded: What loading yielded; None while nothing was loaded.
        waited: Seconds that the worker took to answer in total, without calls that hung.
        output_cut: Whether a worker printed more than is kept.
    """

    def __init__(self, spawn: Callable[[], WorkerProcess], program: Program, assignment: Assignment) -> None:
        """No worker is started yet.

        Args:
            spawn: A new worker.
        """
        self.attestation: Attestation | None = None
        self.loaded: Loaded | None = None
        self.waited = 0.0
        self.output_cut = False
        self._granted = 0.0  # seconds beyond the limit on all questions, since the machine was busy
        self._computed = 0.0  # processor time of workers that are gone, at most the seconds waited for them
        self._waited_before = 0.0  # seconds waited for those
        self._out_of_time = False
        self._spawn = spawn
        self._program = program
        self._assignment = assignment
        self._link: Link | None = None
        self._watched = NOTHING_SEEN  # reported by workers that are gone
        self._load_fault: WorkerFault | None = None
        self._busy: BusyMachineError | None = None

    @property
    def link(self) -> Link:
        """The link to a worker in which the submission is loaded."""
        if self._busy is not None:
            raise self._busy
        if self._load_fault is not None:
            raise self._load_fault  # it would not load the next time either
        if self._link is None or self._link.broken:
            self.close()
            record = WatchRecord(self._assignment.forbidden_patterns, tuple(self._program.source or {}))
            self._link = Link(self._spawn(), record)
            self.attestation = self._link.process.attestation
            request = Load(
                self._program,
                self._assignment.forbidden_patterns,
                self._assignment.class_names,
                # the worker learns it, so it must not be the judge's own
                zlib.crc32(repr(self._program.source).encode()),
            )
            try:
                loaded = self.timed_reply(self._link, request, Loaded, self._assignment.limits.load_seconds)
                self.loaded = untrusted_replies.loaded(loaded, self._program)
            except WorkerFault as fault:
                self._load_fault = fault
                raise
            self.prove_watch()
            if self._link.broken:
                self._load_fault = WorkerFault("death", "it did not go on after it was loaded")
                raise self._load_fault
        return self._link

    @property
    def watched(self) -> Watched:
        """Which forbidden parts were reached at run time, and where the code pried."""
        return self._watched | self._link.watch.watched if self._link is not None else self._watched

    def prove_watch(self) -> None:
        """Test whether every watched part still reports its use.

        Raises:
            BusyMachineError: The machine was too busy to tell.
        """
        if self._link is not None and not self._link.broken:
            started = time.monotonic()
            token, seconds = secrets.randbelow(2**31), self._assignment.limits.load_seconds
            try:
                self._link.prove_watch(token, seconds=seconds, limit=REPLY_LIMIT)
            except WorkerFault as fault:
                self._busy = BusyMachineError()
                raise self._busy from fault
            self.waited += time.monotonic() - started

    def timed_reply(
        self, link: Link, request: Any, reply: type[Any], seconds: float, answers: Answers | None = None
    ) -> Any:
        """Ask the worker and note how long it took.

        Raises:
            BusyMachineError: The machine was too busy; nothing is asked of this submission any more.
        """
        started = time.monotonic()
        try:
            return link.ask(request, reply, seconds=seconds, limit=REPLY_LIMIT, answers=answers)
        except WorkerFault as fault:
            if fault.hindered:
                self._busy = BusyMachineError()
                raise self._busy from fault
            if fault.kind == "time":  # a hang costs its component only, not the others' time
                started = time.monotonic()
            raise
        finally:
            self.waited += time.monotonic() - started

    def is_out_of_time(self, seconds: float) -> bool:
        """Whether all questions together took longer than this, which a busy machine extends.

        Once it is out of time, it remains so. On a machine that is still busy without its worker when all is
        used up that can be added, nothing more is asked, and what was left is not the submission's fault; but
        not if the answers took as much processor time as they may take.
        """
        if not self._out_of_time and self._busy is None and self.waited > seconds + self._granted:
            self._granted += max(extension(seconds, self._granted), 0.0)
            self._out_of_time = self.waited > seconds + self._granted
            if self._out_of_time:
                self.close()  # what it keeps busy itself does not count
                hindered = self._computed < seconds and self.waited < 2 * (seconds + self._granted)
                if hindered and remains_busy(seconds, self._granted):
                    self._out_of_time, self._busy = False, BusyMachineError()
        return self._out_of_time

    def close(self) -> None:
        """End the worker; may be called twice."""
        if self._link is not None:
            self._count_computed(self._link)
            self._link.close()
            self._watched |= self._link.watch.watched
            self.output_cut |= self._link.process.output_cut
            self._link = None

    def _count_computed(self, link: Link) -> None:
        link.process.kill()
        with contextlib.suppress(EngineError):  # its host is gone, and nothing is measured
            # a call that hung computed as well, but was not waited for
            used = link.process.ending().cpu_seconds or 0.0
            self._computed += min(used, self.waited - self._waited_before)
        self._waited_before = self.waited
