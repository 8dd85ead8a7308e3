"""Proof of the isolation, from two sides: the process's own canaries and what the host sees in /proc.

Canaries are attempts that a locked-down process makes itself, and that must all fail. It decides which level
the two sides prove together, and refuses a process without its required layers. `lockdown`
puts the layers on.
"""

import errno
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.domain.errors import SandboxError
from grader.domain.evidence import Attestation
from grader.sandbox import libc, rootfs
from grader.sandbox.lockdown import Layer
from grader.sandbox.namespaces import CHILD_NAMESPACES, namespace_links, status_fields
from grader.sandbox.process_limits import Cgroup, observed_cgroups, observed_limits


@dataclass(frozen=True)
class Outside:
    """The targets of the attempts.

    Attributes:
        secret: A file of the host's that would be readable without isolation.
        address: The host's own socket.
        host_pid: The host's pid as the child would see it without a PID namespace.
        descriptors: The descriptors that the child is meant to have.
        closed: Folders that nothing hides, and that its user may not enter.
    """

    secret: Path
    address: str
    host_pid: int
    descriptors: frozenset[int]
    closed: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _Canary:
    """One attempt: it must fail if any of these layers is on (none: always).

    Attributes:
        attempt: Raises OSError if it is forbidden, and returns if it is not.
        stopped_by_own_user: It must also fail for a user of the process's own.
    """

    what: str
    stopped_by: frozenset[Layer]
    attempt: Callable[[Outside], object]
    stopped_by_own_user: bool = False

    def must_fail(self, layers: frozenset[Layer], *, own_user: bool) -> bool:
        """Whether something that is on forbids it."""
        by_layer = not self.stopped_by or bool(self.stopped_by & layers)
        return by_layer or (own_user and self.stopped_by_own_user)


def successful_canaries(layers: frozenset[Layer], outside: Outside, *, own_user: bool = False) -> list[str]:
    """What the calling process could do although an active layer forbids it.

    Args:
        layers: The layers that are on.
        outside: What to aim at.
        own_user: The process has a user of its own, who owns nothing of the machine.

    Raises:
        SandboxError: Python's own files can no longer be read, so late imports would fail.
    """
    _require_late_imports()
    succeeded = []
    for canary in _CANARIES:
        if not canary.must_fail(layers, own_user=own_user):
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

    with open(os.__file__, "rb") as first, open(os.__file__, "rb") as second:  # noqa: PTH123
        fcntl.flock(first, fcntl.LOCK_EX)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    raise PermissionError(errno.EPERM, "locks have no effect")


def _ask_for_a_lock(_: Outside) -> None:
    import fcntl

    fcntl.fcntl(0, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))


def _closed_folders(outside: Outside) -> None:
    for folder in outside.closed:
        # a folder that cannot be listed may still be entered by whoever knows the names in it
        for attempt in (os.listdir, lambda closed: os.stat(f"{closed}/.")):  # noqa: PTH116
            try:
                attempt(folder)
            except OSError:
                continue
            return
    raise PermissionError(errno.EACCES, "all of them are closed")


_FILES = frozenset({Layer.NAMESPACES, Layer.LANDLOCK})
_FILTER = frozenset({Layer.SECCOMP})
_ALONE = frozenset({Layer.NAMESPACES})

_CANARIES = (
    _Canary("read a file of the host", _FILES, lambda outside: outside.secret.read_bytes(), True),
    _Canary("enter a folder of the course or of the results", frozenset(), _closed_folders),
    _Canary(
        "read past Landlock",
        frozenset({Layer.LANDLOCK}),
        lambda outside: (rootfs.LANDLOCK_CANARY if rootfs.SCRATCH.is_dir() else outside.secret).read_bytes(),
    ),
    _Canary("write beside Python's own files", _FILES, _write_packages, True),
    _Canary(
        "write into the root folder", _FILES, lambda _: Path("/grader-canary").touch(exist_ok=False), True
    ),
    _Canary("see other processes", _ALONE, _other_processes),
    _Canary("use a descriptor of the host", frozenset(), _descriptors),
    _Canary("signal the host", _ALONE | _FILTER, lambda outside: os.kill(outside.host_pid, 0), True),
    _Canary("signal every process", _FILTER, lambda _: os.kill(-1, signal.SIGCONT)),
    _Canary("make a socket", _FILTER, _socket),
    _Canary("connect to the host", _ALONE | _FILTER, _connect, True),
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


# --- attestation -----------------------------------------------------------------------------------------


REFUSED = "refused"
STRICT = "strict"
STANDARD = "standard"
CONTAINER = "container"
UNOFFICIAL = "unofficial"

_CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapAmb")
REMEDY = "Run `grader doctor` to see what this machine gives and how to get what is missing."


@dataclass(frozen=True)
class ChildReport:
    """What a child reports before it knows anything about a submission.

    Attributes:
        reported: What only the process itself knows (`landlock` -> version).
        succeeded: Canaries that should have failed.
        error: Why the lock-down could not be completed; empty if it was.
    """

    reported: Mapping[str, str] = field(default_factory=dict)
    succeeded: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Expectation:
    """What the host put on a child.

    Attributes:
        layers: The layers of its host.
        gpu: It may use the GPU.
        cgroup: Its memory cgroup.
        host_links: The host's own namespaces.
        uid: The uid that it should have in the host's view.
        own_uids: It gave up root for that uid, rather than entering a user namespace.
        contained: That uid stands for namespaces, which a container does not give.
        bubblewrap: The version of the bubblewrap around its host, if there is one.
    """

    layers: frozenset[Layer]
    gpu: bool
    cgroup: Cgroup | None
    host_links: Mapping[str, str]
    uid: int
    own_uids: bool
    bubblewrap: str = ""
    contained: bool = False


def level(layers: Mapping[str, str]) -> str:
    """`strict`, `standard` or `refused`, by what was observed."""
    for needed in ("namespaces", "landlock", "seccomp", "no_new_privs", "uid"):
        if not layers.get(needed):
            return REFUSED
    memory = layers.get("memory", "")
    if memory.startswith("cgroup"):
        return STRICT
    return STANDARD if memory == "address_space" else REFUSED


def contained_level(layers: Mapping[str, str]) -> str:
    """`container` or `refused`, by what was observed where no namespaces are."""
    proved = all(layers.get(needed) for needed in ("no_new_privs", "capabilities", "uid"))
    return CONTAINER if proved and layers.get("memory", "none") != "none" else REFUSED


def attestation(
    pid: int, report: ChildReport, expected: Expectation, *, unofficial: bool, missing: tuple[str, ...]
) -> Attestation:
    """The proof that a child is locked down as intended.

    Args:
        pid: The child's, as /proc shows it to the host.
        report: The child's own part.
        expected: What must be found.
        unofficial: The operator accepts less than an official grade needs.
        missing: Sentences on the layers that this machine lacks.

    Raises:
        SandboxError: A layer does not work, or there are too few.
    """
    if report.error:
        raise SandboxError(report.error)
    if report.succeeded:
        raise SandboxError(
            f"The locked-down process could still {' and '.join(report.succeeded)}, so nothing was executed. "
            + REMEDY
        )
    layers = _observed_layers(pid, report, expected)
    achieved = contained_level(layers) if expected.contained else level(layers)
    if achieved == REFUSED:
        if not unofficial:
            raise SandboxError(
                f"The isolation is too weak, so nothing was executed: {' '.join(missing) or layers} {REMEDY}"
            )
        achieved = UNOFFICIAL
    return Attestation(UNOFFICIAL if unofficial else achieved, layers, missing)


def _observed_layers(pid: int, report: ChildReport, expected: Expectation) -> dict[str, str]:
    """Layer -> what was observed; raises SandboxError if a layer that was put on does not show."""
    status = status_fields(pid)
    layers = {
        "canaries": f"{CANARY_COUNT} attempts, none succeeded",
        "no_new_privs": _required("no_new_privs", status["NoNewPrivs"], "1"),
        "capabilities": _no_capabilities(status, expected),
        "uid": _uid(status, expected),
        "memory": _memory(pid, expected),
    }
    if Layer.NAMESPACES in expected.layers:
        layers["namespaces"] = _namespaces(pid, status, expected)
    if Layer.SECCOMP in expected.layers:
        layers["seccomp"] = _required("the system-call filter", status["Seccomp"], "2")
    if Layer.LANDLOCK in expected.layers:
        layers["landlock"] = report.reported.get("landlock", "")
    if expected.bubblewrap:
        layers["bubblewrap"] = expected.bubblewrap
    if expected.gpu:
        layers["gpu"] = "true"
    return layers


def _required(what: str, observed: str, wanted: str) -> str:
    if observed != wanted:
        raise SandboxError(
            f"{what} does not show from outside (found {observed!r}, expected {wanted!r}), so nothing was "
            f"executed. {REMEDY}"
        )
    return observed


def _no_capabilities(status: Mapping[str, str], expected: Expectation) -> str:
    sets = list(_CAPABILITY_SETS)
    if expected.own_uids or Layer.NAMESPACES in expected.layers:
        # without a namespace an ordinary user cannot empty it; no_new_privs makes it harmless
        sets.append("CapBnd")
    held = max(int(status[name], 16) for name in sets)
    return _required("giving up capabilities", f"{held:x}", "0")


def _uid(status: Mapping[str, str], expected: Expectation) -> str:
    uids = set(status["Uid"].split())
    _required("an unprivileged user", ",".join(sorted(uids)), str(expected.uid))
    if expected.contained:
        # what is closed to its user may be open to a group
        groups = {*status["Gid"].split(), *status["Groups"].split()}
        _required("a group of its own", ",".join(sorted(groups)), str(expected.uid))
    return str(expected.uid)


def _namespaces(pid: int, status: Mapping[str, str], expected: Expectation) -> str:
    links = namespace_links(pid)
    apart = [kind for kind, link in links.items() if link != expected.host_links[kind]]
    wanted = [*CHILD_NAMESPACES, *(() if expected.own_uids else ("user",))]
    _required("a namespace", ",".join(apart), ",".join(wanted))
    _required("a PID namespace of its own", status["NSpid"].split()[-1], "1")
    return ",".join(apart)


def _memory(pid: int, expected: Expectation) -> str:
    if expected.cgroup is not None:
        if expected.cgroup.path.name not in observed_cgroups(pid):
            raise SandboxError(f"The process is not in its memory cgroup, so nothing was executed. {REMEDY}")
        return f"cgroup-v{expected.cgroup.version}"
    bounded = observed_limits(pid)["Max address space"] != "unlimited"
    # a file in memory escapes a bound on address space, so the filter must forbid it
    if bounded and Layer.SECCOMP in expected.layers:
        return "address_space"
    # the container's own bound is the last: the grader's parent survives it
    return "address_space_of_each" if bounded and expected.contained else "none"
