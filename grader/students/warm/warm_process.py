"""The warm process: loads PyTorch, pytest and the public checks, and makes checks until it is idle.

Where a process that has loaded PyTorch may fork (Linux), each check is made in a fork. Its workers are
forks of another process, which has loaded what students import and nothing of the checks. Elsewhere a
warm process makes one check, with a worker that waits beside it, and starts its successor. A student's
code runs only in workers. The asking process receives the findings as they are made, and ends the check
by closing the connection.
"""

import _thread
import contextlib
import gc
import hmac
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from grader.domain.errors import EngineError, GraderError, Interruption
from grader.sandbox.process_limits import ProcessLimits
from grader.students.warm.address import Lock, Messages, Unanswered, WarmAddress, fingerprint, tell
from grader.students.warm.starting import FORKS, start
from grader.students.warm.warm_workers import WorkerSource, forked_workers, waiting_worker

if TYPE_CHECKING:
    from grader.domain.assignment import Assignment
    from grader.judge.examination import Checks
    from grader.students.homework import LocalAssignment

REQUEST_SECONDS = 5.0  # within which a connection must send its request
LOOK_SECONDS = 0.2  # how often it looks whether forks have ended
LEAVE_SECONDS = 5.0  # within which a check that nobody waits for must end


class _Stopped(Interruption):
    """The warm process has to end."""


@dataclass
class _RequestListener:
    """Where requests come in.

    Attributes:
        fingerprint: Of the assignment and the installation for which modules and checks were loaded here. A
            request with another one cannot be answered.
    """

    address: WarmAddress
    lock: Lock
    listener: socket.socket
    secret: str
    fingerprint: str

    def request(self, seconds: float) -> tuple[socket.socket, dict[str, Any]] | None:
        """The next request and its connection; None where none comes in time, or it is not a proper request.

        Raises:
            _Stopped: The assignment or the installation has changed.
        """
        self.listener.settimeout(max(seconds, 0.001))
        try:
            connection, _ = self.listener.accept()
        except TimeoutError:
            return None
        try:
            return connection, self._accepted(connection)
        except (Unanswered, OSError):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise

    def _accepted(self, connection: socket.socket) -> dict[str, Any]:
        connection.settimeout(REQUEST_SECONDS)
        asked = Messages(connection).next()
        if not hmac.compare_digest(str(asked.get("secret", "")), self.secret):
            raise Unanswered("the secret is wrong")
        if asked.get("fingerprint") != self.fingerprint:
            raise _Stopped
        connection.settimeout(None)
        tell(connection, {"begun": True})
        return asked

    def close(self) -> None:
        """Take no more requests; connections that were not accepted yet are closed."""
        self.address.close()
        self.listener.close()


def main() -> None:
    """Run a warm process: `--forks|--once NAME IDLE_SECONDS PRIVATE_FOLDER ASSIGNMENT_FOLDER DATASETS`."""
    way, name, idle, private, assignment, datasets = sys.argv[1:]
    del sys.argv[1:]
    address, folders = WarmAddress(Path(private), name), (Path(assignment), Path(datasets))
    environment = dict(os.environ)  # before a check sets its own variables
    loaded_fingerprint = fingerprint(folders[0], environment)  # before anything of the assignment is read
    used = False
    # Here there may be no folder for the socket, no space on the disk, or checks that cannot be collected.
    # Nobody is told: a check that runs without this process meets the same error and reports it.
    with contextlib.suppress(_Stopped, GraderError, OSError), address.lock as lock:
        if lock.taken():
            signal.signal(signal.SIGTERM, _stop)
            requests = _RequestListener(address, lock, *address.listener(), loaded_fingerprint)
            with contextlib.closing(requests):
                used = (_run_forks if way == FORKS else _run_once)(requests, float(idle), *folders)
    if used:
        start(address, *folders, environment, idle=float(idle), way=way)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit  # what libraries catch while they are loaded is an Exception


def _run_forks(requests: _RequestListener, idle: float, assignment: Path, datasets: Path) -> bool:
    """Make each check in a fork; returns whether another process is to replace this one."""
    with forked_workers(requests.address.workers) as workers:  # before pytest and the checks are loaded
        from grader.students.homework import local_at

        local = local_at(assignment, datasets)
        _serve(local, workers, lambda runner: _fork_for_each(requests, idle, runner))
    return False


def _run_once(requests: _RequestListener, idle: float, assignment: Path, datasets: Path) -> bool:
    """Make one check; returns whether another process is to replace this one."""
    from grader.students.homework import local_at

    local = local_at(assignment, datasets)
    limits = ProcessLimits(output_kb=local.assignment.limits.output_kb)
    with waiting_worker(limits) as worker:
        return _serve(local, worker, lambda runner: _run_one_check(requests, idle, runner))


def _serve(local: "LocalAssignment", workers: WorkerSource, serve: "Callable[[_CheckRunner], bool]") -> bool:
    """Collect the public checks, load what they need, and have checks made."""
    from grader.students.own_check import with_checks
    from grader.students.own_machine import with_own_machine_limits

    assignment = with_own_machine_limits(local.assignment)

    def served(checks: "Checks") -> bool:
        _load_what_checks_need()
        return serve(_CheckRunner(checks, assignment, workers))

    return with_checks(local, assignment, served)


def _load_what_checks_need() -> None:
    """Load what a check loads when it first needs it."""
    import torch

    import grader.judge.student
    import grader.training  # noqa: F401
    from grader.domain.analyzed_program import Program
    from grader.domain.evidence import Finding
    from grader.files.stored_records import validator
    from grader.protocol import typed_messages
    from grader.sandbox import host_client  # noqa: F401
    from grader.students.own_check import LocalCheck

    torch.set_num_threads(1)  # also because a process that has used several cannot be forked
    typed_messages.prepare_validators()
    for kind in (Program, Finding, LocalCheck):
        validator(kind)
    gc.collect()
    gc.freeze()


def _fork_for_each(requests: _RequestListener, idle: float, runner: "_CheckRunner") -> bool:
    """Fork for each request until none comes for a while, or a fork fails; then wait for those at work."""
    at_work: set[int] = set()
    until = time.monotonic() + idle
    try:
        while at_work or time.monotonic() < until:
            request = requests.request(LOOK_SECONDS if at_work else until - time.monotonic())
            if request is not None:
                at_work.add(_forked(requests, runner, *request))
            if request is not None or at_work:
                until = time.monotonic() + idle
            for pid, status in _ended(at_work):
                at_work.discard(pid)
                if status != 0 or not runner.workers.is_there():
                    raise _Stopped
    finally:
        requests.close()
        for pid in at_work:
            os.waitpid(pid, 0)
    return False


def _ended(pids: set[int]) -> list[tuple[int, int]]:
    return [ended for ended in (os.waitpid(pid, os.WNOHANG) for pid in pids) if ended != (0, 0)]


def _forked(
    requests: _RequestListener, runner: "_CheckRunner", connection: socket.socket, asked: dict[str, Any]
) -> int:
    """Make a check in a fork of this process; returns its pid."""
    pid = os.fork()
    if pid:
        connection.close()
        return pid
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        requests.listener.close()
        requests.lock.release()
        status = int(not runner.run(connection, asked))
    finally:
        os._exit(status)


def _run_one_check(requests: _RequestListener, idle: float, runner: "_CheckRunner") -> bool:
    """Make one check in this process, if asked in time; returns whether one was made and went well."""
    until = time.monotonic() + idle
    request = None
    while request is None and time.monotonic() < until:
        request = requests.request(until - time.monotonic())
    requests.close()
    if request is None:
        return False
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this check is completed before the process ends
    with request[0]:
        return runner.run(*request)


@dataclass(frozen=True)
class _CheckRunner:
    """Runs one check, in the folder and environment of the asking process."""

    checks: "Checks"
    assignment: "Assignment"
    workers: WorkerSource

    def run(self, connection: socket.socket, asked: dict[str, Any]) -> bool:
        """Run the check; returns False if it failed through a fault of the grader's."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        done = threading.Event()
        watch = threading.Thread(target=self._end_when_left, args=(connection, done), daemon=True)
        try:
            watch.start()
            self._run(connection, asked, done)
        except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
            return True  # nobody waits for it
        except (Unanswered, EngineError):
            return False
        except GraderError:
            return True  # the asking process makes the check itself, and reports the error
        finally:
            done.set()
        return True

    def _run(self, connection: socket.socket, asked: dict[str, Any], done: threading.Event) -> None:
        from grader.domain.analyzed_program import Program
        from grader.domain.evidence import Blame, Finding
        from grader.files.stored_records import validator
        from grader.students.own_check import LocalCheck, checked_again
        from grader.students.own_machine import OwnWorkers

        def send(key: str, kind: Any, value: Any) -> None:
            tell(connection, {key: validator(kind).dump_python(value, mode="json")})

        def report(finding: Finding) -> None:
            if finding.blame is Blame.ENGINE:
                raise Unanswered("a check in a process of its own may succeed")
            send("finding", Finding, finding)

        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        path = Path(asked["file"])
        with OwnWorkers(self.assignment, path.parent, self.workers) as workers:
            check = checked_again(
                self.checks,
                path,
                self.assignment,
                workers,
                lambda program: send("program", Program, program),
                report,
                tried=asked["tried"],
                part=asked["part"],
            )
        done.set()  # the asking process closes the connection now
        send("found", LocalCheck, check)

    def _end_when_left(self, connection: socket.socket, done: threading.Event) -> None:
        """Interrupt the check as Ctrl-C does, when the asking process closes the connection."""
        with contextlib.suppress(OSError):
            connection.recv(1)
        if done.is_set():
            return
        if sys.platform == "win32":
            _thread.interrupt_main()
        else:
            os.kill(os.getpid(), signal.SIGINT)
        if not done.wait(LEAVE_SECONDS):
            self.workers.kill()
            os._exit(0)
