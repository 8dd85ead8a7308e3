"""One child of a host: its pipes, its fork, and what it does until the submission may be loaded."""

import fcntl
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from grader.domain.errors import GraderError, SandboxError
from grader.domain.limits import MEGABYTE
from grader.sandbox.attestation import ChildReport, Outside, successful_canaries
from grader.sandbox.lockdown import Confinement, confine
from grader.sandbox.namespaces import fork_first_process
from grader.sandbox.process_limits import ProcessLimits, address_space, apply_limits

ChildFunction = Callable[[BinaryIO, BinaryIO], None]

# a child's descriptors: empty input, output (twice), requests, replies, its report, the host's go-ahead
_INPUT, _OUTPUT, _ERRORS, _REQUESTS, _REPLIES, _REPORT, _GO = range(7)
DESCRIPTORS = frozenset(range(7))
MOST_REPORT_BYTES = 65_536


@dataclass(frozen=True)
class Pipes:
    """The pipes of one child, as (read end, write end)."""

    requests: tuple[int, int]
    replies: tuple[int, int]
    output: tuple[int, int]
    report: tuple[int, int]
    go: tuple[int, int]

    @classmethod
    def made(cls) -> "Pipes":
        """New pipes, closed on exec."""
        return cls(*(os.pipe() for _ in range(5)))

    @property
    def of_client(self) -> list[int]:
        """Requests (to write), replies and output (to read)."""
        return [self.requests[1], self.replies[0], self.output[0]]

    @property
    def of_child(self) -> list[int]:
        """The child's ends, in the order of its descriptors from `_ERRORS` on."""
        return [self.output[1], self.requests[0], self.replies[1], self.report[1], self.go[0]]

    def close_all(self, *, but: tuple[int, ...] = ()) -> None:
        """Close every end except the given ones."""
        for pair in (self.requests, self.replies, self.output, self.report, self.go):
            for end in pair:
                if end not in but:
                    os.close(end)


def forked_child(
    child: ChildFunction,
    pipes: Pipes,
    *,
    limits: ProcessLimits,
    confinement: Confinement | None,
    outside: Outside | None,
    own_ns: int,
) -> int:
    """Fork a child that locks itself down, reports, waits for the go-ahead, and runs `child`.

    Args:
        child: Its function; called with its requests and its replies.
        pipes: Its pipes. The caller closes the child's ends afterwards.
        limits: What it may use.
        confinement: What it puts on itself; None for trusted children, which have limits only.
        outside: What its canaries aim at.
        own_ns: The host's PID namespace, if the child gets one of its own.

    Returns:
        Its pid, as the host numbers processes.
    """
    if own_ns >= 0:
        pid = fork_first_process(own_ns)
    else:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _run(child, pipes, limits, confinement, outside)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - nothing may unwind into the host's loop
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(status & 255)
    return 0


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def _run(
    child: ChildFunction,
    pipes: Pipes,
    limits: ProcessLimits,
    confinement: Confinement | None,
    outside: Outside | None,
) -> None:
    _keep_only(pipes.of_child)
    report = _report(limits, confinement, outside)
    document = {"reported": dict(report.reported), "succeeded": list(report.succeeded), "error": report.error}
    with open(_REPORT, "wb") as stream:  # noqa: PTH123 - a descriptor
        stream.write(json.dumps(document).encode() + b"\n")
    with open(_GO, "rb") as stream:  # noqa: PTH123
        if stream.read(1) != b"g":
            os._exit(1)
    with open(_REQUESTS, "rb") as reader, open(_REPLIES, "wb") as writer:  # noqa: PTH123
        child(reader, writer)


def _keep_only(ends: list[int]) -> None:
    """Move the child's ends to their fixed numbers and close everything else."""
    # first out of the way, so that no move overwrites an end that is still to be moved
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 200) for end in [ends[0], *ends]]
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, _INPUT)
    for target, end in enumerate(high, start=_OUTPUT):
        os.dup2(end, target)
    os.closerange(len(DESCRIPTORS), os.sysconf("SC_OPEN_MAX"))


def _report(limits: ProcessLimits, confinement: Confinement | None, outside: Outside | None) -> ChildReport:
    """Lock the calling process down and try the canaries; failures are in the report."""
    if confinement is None or outside is None:
        os.setsid()
        memory = address_space() + limits.memory_mb * MEGABYTE
        apply_limits(limits, address_space_bytes=memory, own_user=False)
        return ChildReport()
    try:
        details = confine(confinement)
        own_user = confinement.who.own_uids
        return ChildReport(
            details, tuple(successful_canaries(confinement.layers, outside, own_user=own_user))
        )
    except GraderError as error:
        return ChildReport(error=str(error))
    except Exception as error:  # noqa: BLE001 - any surprise must end in a refusal
        return ChildReport(
            error=f"The lock-down failed unexpectedly ({type(error).__name__}: {error}), so nothing was "
            "executed."
        )


def child_report(packed: bytes) -> ChildReport:
    """The report that a child wrote.

    Raises:
        SandboxError: It is not complete.
    """
    try:
        document = json.loads(packed)
        return ChildReport(document["reported"], tuple(document["succeeded"]), document["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(
            "A process died while it was being locked down, so nothing was executed. "
            "Run `grader doctor` to see which layer fails."
        ) from error


def pid_in_proc(pidfd: int) -> int:
    """A process's pid as /proc numbers it, which differs from the host's numbers in a PID namespace."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise SandboxError("A process ended before it could be observed, so nothing was executed.")


_FLAGS = 6  # the place of a process's flags among what follows its name in /proc/<pid>/stat
_PF_EXITING = 4


def is_dying(pidfd: int) -> bool:
    """Whether a process has ended, or is about to."""
    try:
        stat = Path(f"/proc/{pid_in_proc(pidfd)}/stat").read_text()
    except (OSError, SandboxError):
        return True
    fields = stat.rpartition(")")[2].split()
    return bool(int(fields[_FLAGS]) & _PF_EXITING)
