"""The processes of a run: what they hold in memory, and their end.

What a student's process leaves behind loses its parent. It then comes to the process that watches the run,
so that its memory counts and it ends with the run. This module decides nothing about when a run ends.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import libc

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 3.0  # less than what `PackageSettings.run_seconds` reserves
_KILLING_SECONDS = 2.0  # as well: what is killed may wait for its last turn on a busy machine
_POLL_SECONDS = 0.1


@contextlib.contextmanager
def adopted_orphans() -> Iterator[frozenset[int]]:
    """Meanwhile, whatever loses its parent below this process becomes its child. Yields those that it has."""
    with contextlib.suppress(OSError):
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield frozenset(_children().get(os.getpid(), ()))
    finally:
        with contextlib.suppress(OSError):
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)


@dataclass(frozen=True)
class RunProcesses:
    """The process that grades, and all that it and its descendants start.

    Attributes:
        first: The process that grades: a child of the calling process.
        others: The other children of the calling process, which have nothing to do with the run.
    """

    first: int
    others: frozenset[int]

    def memory(self) -> int:
        """What all of them hold in memory, in bytes; what a fork shares counts once."""
        held: dict[bytes, int] = {}
        total = 0
        for pid, parent in self._parents().items():
            program, own = _command_line(pid), _beyond_files(pid)
            share = _proportional_share(pid)
            if share is None:
                # it hides what it shares. It began as a copy of the first process of its program, which is
                # its host and goes on, or of its parent, which may have ended since
                copied = held.get(program, 0)
                if _command_line(parent) == program:
                    copied = max(copied, _beyond_files(parent))
                share = max(own - copied, 0)
            total += share
            held.setdefault(program, own)
        return total

    def end(self) -> None:
        """See to the end of what is left, once the process that grades has ended.

        Hosts end with the process that started them, and first end what students' processes have left behind.
        """
        self._wait(_GRACE_SECONDS)
        self._wait(_KILLING_SECONDS, kill=True)

    def reap_orphans(self) -> None:
        """Take note of the end of those that have no other parent any more."""
        for pid in self._children_here(_children()):
            if pid != self.first:
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)

    def _wait(self, seconds: float, *, kill: bool = False) -> None:
        patience = time.monotonic() + seconds
        while running := [pid for pid in self._parents() if _runs(pid)]:
            for pid in running if kill else ():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.reap_orphans()
            if time.monotonic() > patience:
                return
            time.sleep(_POLL_SECONDS)
        self.reap_orphans()

    def _parents(self) -> dict[int, int]:
        """Process -> its parent: first the process that grades and what it started, then the orphans."""
        children = _children()
        parents: dict[int, int] = {}
        for root in self._children_here(children):
            parents[root] = os.getpid()
            parents.update(_started_by(root, children))
        return parents

    def _children_here(self, children: Mapping[int, list[int]]) -> list[int]:
        own = [pid for pid in children.get(os.getpid(), ()) if pid not in self.others]
        return sorted(own, key=lambda pid: pid != self.first)


def _started_by(pid: int, children: Mapping[int, list[int]]) -> Iterator[tuple[int, int]]:
    """(process, its parent) of all that a process started, and of what these started."""
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent, ()):
            yield child, parent
            waiting.append(child)


def _children() -> dict[int, list[int]]:
    """Process -> its children, of all processes that can be seen."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                children.setdefault(int(_status(int(folder.name))[1]), []).append(int(folder.name))
    return children


def _runs(pid: int) -> bool:
    """Whether a process has not ended; whoever is to wait for it may not have done so yet."""
    try:
        return _status(pid)[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _status(pid: int) -> list[str]:
    """The state of a process, its parent, and what else `/proc/PID/stat` has after its name."""
    # the name of a program may hold anything, brackets included
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _proportional_share(pid: int) -> int | None:
    """What a process holds, with its part of what it shares, in bytes; None of one that hides it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return None


def _beyond_files(pid: int) -> int:
    """What of a process's memory is no file's, in bytes; shared or not."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _command_line(pid: int) -> bytes:
    """What a process runs; a fork has what its parent runs."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
