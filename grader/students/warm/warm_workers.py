"""The workers of a warm process: forks of a process that has loaded everything, or one that waits."""

import contextlib
import gc
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from grader.sandbox import libc
from grader.sandbox.child_processes import Child, Processes
from grader.sandbox.forkserver import LocalProcesses
from grader.sandbox.process_limits import ProcessLimits
from grader.students.own_machine import WORKER
from grader.worker.worker_host import LATER_FLAG, WARM_FLAG, own_variables, prepare, serve_later, surroundings

# on one's own machine only the limit on output is enforced; nobody reaches this one
_NO_LIMIT = 1_000_000_000


def unlimited(limits: ProcessLimits) -> ProcessLimits:
    """The limits without those that are not enforced on a student's own machine."""
    return ProcessLimits(
        memory_mb=_NO_LIMIT,
        cpu_seconds=_NO_LIMIT,
        file_mb=_NO_LIMIT,
        processes=_NO_LIMIT,
        open_files=_NO_LIMIT,
        scratch_mb=_NO_LIMIT,
        output_kb=limits.output_kb,
    )


class WorkerSource(Protocol):
    """Makes the workers of the checks."""

    def __call__(
        self, module: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path | None
    ) -> Processes:
        """Workers in this process's environment, with further variables: see `OwnWorkers`."""

    def is_there(self) -> bool:
        """Whether it can still make any."""

    def kill(self) -> None:
        """End the workers that this process was given."""


@contextlib.contextmanager
def forked_workers(folder: Path) -> Iterator[WorkerSource]:
    """Workers that are forks of a process that has loaded what students import, itself a fork of this one.

    Args:
        folder: Where that process listens; an old folder is replaced.

    Raises:
        OSError: The folder cannot be made.
    """
    from grader.sandbox import child_processes, forkserver
    from grader.sandbox.lockdown import Lockdown

    shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
    folder.mkdir(mode=0o700)
    own_variables()
    libc.keep_freed_memory()
    prepare()
    gc.collect()
    gc.freeze()
    address = str(folder / "socket")
    alive, lifeline = os.pipe()
    with child_processes.listening_socket(address) as listener:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(alive, 0)
            _close_all_but(0, 1, 2, listener.fileno())
            forkserver.serve(serve_later, listener=listener, lockdown=Lockdown.NONE)
            os._exit(0)
    os.close(alive)
    try:
        yield _ForkedWorkers(address, pid)
    finally:
        os.close(lifeline)
        with contextlib.suppress(ChildProcessError):  # it ended before, and was waited for
            os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _close_all_but(*descriptors: int) -> None:
    """Close what belongs to the process that was forked: its requests, and the lock that it holds."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in descriptors:
            with contextlib.suppress(OSError):  # the descriptor that listed the folder
                os.close(int(entry.name))


class _ForkedWorkers:
    def __init__(self, address: str, pid: int) -> None:
        self._address = address
        self._pid = pid

    def __call__(
        self, module: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path | None
    ) -> Processes:
        return _ForkedProcesses(self._address, surroundings({**os.environ, **env}, str(folder or Path.cwd())))

    def is_there(self) -> bool:
        try:
            return os.waitpid(self._pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def kill(self) -> None:
        """Do nothing: each worker ends with the connection of the process that it was given to."""


class _ForkedProcesses:
    def __init__(self, address: str, worker_setup: bytes) -> None:
        self._address = address
        self._worker_setup = worker_setup

    def spawn(self, limits: ProcessLimits, gpu: bool = False) -> Child:
        from grader.sandbox.host_client import Host

        child = Host.connect(self._address).spawn(unlimited(limits))
        child.writer.write(self._worker_setup)
        child.writer.flush()
        return child


@contextlib.contextmanager
def waiting_worker(limits: ProcessLimits) -> Iterator[WorkerSource]:
    """A worker that waits with everything loaded, to be used once; further ones are new processes."""
    first = LocalProcesses(WORKER, (WARM_FLAG, LATER_FLAG)).spawn(limits)
    with first:
        yield _WaitingWorker(first)


class _WaitingWorker:
    def __init__(self, first: Child) -> None:
        self._handed_over = [first]
        self._first: Child | None = first

    def __call__(
        self, module: str, arguments: Sequence[str], *, env: Mapping[str, str], folder: Path | None
    ) -> Processes:
        self._worker_setup = surroundings({**os.environ, **env}, str(folder or Path.cwd()))
        self._further = LocalProcesses(module, arguments, env=env, folder=folder)
        return self

    def spawn(self, limits: ProcessLimits, gpu: bool = False) -> Child:
        child, self._first = self._first, None
        if child is None:
            self._handed_over.append(self._further.spawn(limits))
            return self._handed_over[-1]
        child.writer.write(self._worker_setup)
        child.writer.flush()
        return child

    def is_there(self) -> bool:
        return True

    def kill(self) -> None:
        for child in self._handed_over:
            child.kill()
