"""Attempts that a locked-down process makes itself, each of which must fail."""

import errno
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import SandboxError
from grader.sandbox import libc, rootfs
from grader.sandbox.lockdown import Layer


@dataclass(frozen=True)
class Outside:
    """What the attempts aim at.

    Attributes:
        secret: A readable file of the host's that must not be readable.
        address: The host's own socket.
        host_pid: The host's pid as the child would see it without a PID namespace.
        descriptors: The descriptors that the child is meant to have.
    """

    secret: Path
    address: str
    host_pid: int
    descriptors: frozenset[int]


@dataclass(frozen=True)
class _Canary:
    """One attempt: it must fail if any of these layers is on (none: always)."""

    what: str
    stopped_by: frozenset[Layer]
    attempt: Callable[[Outside], object]


def failed_canaries(layers: frozenset[Layer], outside: Outside) -> list[str]:
    """What the calling process could do although a layer that is on forbids it.

    Args:
        layers: The layers that are on.
        outside: What to aim at.

    Raises:
        SandboxError: Python's own files cannot be read any more, so that late imports would fail.
    """
    _require_late_imports()
    succeeded = []
    for canary in _CANARIES:
        if canary.stopped_by and not canary.stopped_by & layers:
            continue
        try:
            canary.attempt(outside)
        except OSError:
            continue
        succeeded.append(canary.what)
    return succeeded


def _require_late_imports() -> None:
    # one of the standard library, one of the installed packages
    modules = (os, sys.modules.get("pyseccomp"))
    for file in [module.__file__ for module in modules if module is not None and module.__file__]:
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise SandboxError(
                f"An unprivileged user cannot read Python's files ({error}), so nothing was executed. Make "
                f"them readable, for example with `chmod -R a+rX {Path(file).parent}`."
            ) from error


def _fork(_: Outside) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _socket(_: Outside) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()


def _connect(outside: Outside) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(outside.address)


def _execute(_: Outside) -> None:
    try:
        os.execv("/nonexistent", ["nonexistent"])
    except OSError as error:
        # only the filter answers before the kernel has looked for the file
        if error.errno == errno.EPERM:
            raise


def _other_processes(_: Outside) -> None:
    if not {name for name in os.listdir("/proc") if name.isdigit()} - {str(os.getpid())}:  # noqa: PTH208
        raise ProcessLookupError


def _descriptors(outside: Outside) -> None:
    if not [
        n for n in range(max(1024, os.sysconf("SC_OPEN_MAX"))) if n not in outside.descriptors and _is_open(n)
    ]:
        raise FileNotFoundError


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _write_packages(_: Outside) -> None:
    Path(os.__file__).with_name("grader-canary").touch(exist_ok=False)


def _memory_file(_: Outside) -> None:
    os.close(os.memfd_create("canary"))


def _lock_a_file(_: Outside) -> None:
    import fcntl  # Windows has none

    with open(os.__file__, "rb") as one, open(os.__file__, "rb") as other:  # noqa: PTH123
        fcntl.flock(one, fcntl.LOCK_EX)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise PermissionError(errno.EPERM, "locks have no effect")


def _ask_for_a_lock(_: Outside) -> None:
    import fcntl

    fcntl.fcntl(0, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))


_FILES = frozenset({Layer.NAMESPACES, Layer.LANDLOCK})
_FILTER = frozenset({Layer.SECCOMP})
_ALONE = frozenset({Layer.NAMESPACES})

_CANARIES = (
    _Canary("read a file of the host", _FILES, lambda outside: outside.secret.read_bytes()),
    _Canary(
        "read past Landlock",
        frozenset({Layer.LANDLOCK}),
        lambda outside: (rootfs.LANDLOCK_CANARY if rootfs.SCRATCH.is_dir() else outside.secret).read_bytes(),
    ),
    _Canary("write beside Python's own files", _FILES, _write_packages),
    _Canary("write into the root folder", _FILES, lambda _: Path("/grader-canary").touch(exist_ok=False)),
    _Canary("see other processes", _ALONE, _other_processes),
    _Canary("use a descriptor of the host", frozenset(), _descriptors),
    _Canary("signal the host", _ALONE | _FILTER, lambda outside: os.kill(outside.host_pid, 0)),
    _Canary("signal every process", _FILTER, lambda _: os.kill(-1, signal.SIGCONT)),
    _Canary("make a socket", _FILTER, _socket),
    _Canary("connect to the host", _ALONE | _FILTER, _connect),
    _Canary("fork", _FILTER, _fork),
    _Canary("start a program", _FILTER, _execute),
    _Canary("hide memory in a file", _FILTER, _memory_file),
    _Canary("lock a file for others", _FILTER, _lock_a_file),
    _Canary("ask for a lock of others", _FILTER, _ask_for_a_lock),
    _Canary("set the date of a device", _ALONE, lambda _: os.utime("/dev/null")),
    _Canary("make a namespace", _FILTER, lambda _: libc.checked("unshare", libc.CLONE_NEWUSER)),
    _Canary("mount", frozenset(), lambda _: libc.checked("mount", None, b".", b"tmpfs", 0, None)),
    _Canary("become root", frozenset(), lambda _: os.setuid(0)),
)
CANARY_COUNT = len(_CANARIES)
