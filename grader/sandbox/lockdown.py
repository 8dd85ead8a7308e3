"""The layers around an untrusted process, and the order in which it puts them on itself.

They include pipes whose numbers reveal nothing about other processes. The kernel numbers anonymous pipes
across the whole machine, so a process could send a message to another by making many of them. A named pipe
gets its number from its file system, which here belongs to the process alone. `attestation` proves that a
layer is on.
"""

import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from grader.domain.errors import SandboxError
from grader.domain.limits import MEGABYTE
from grader.sandbox import kernel_filters, libc, rootfs
from grader.sandbox.namespaces import (
    NOBODY,
    Identity,
    become_user,
    enter_user_namespace,
    leave_shared_namespaces,
    pid_in_host_proc,
)
from grader.sandbox.process_limits import Cgroup, ProcessLimits, address_space, apply_limits
from grader.sandbox.readable_files import (
    CACHE,
    GPU_CHOICE,
    OFFLINE,
    Visible,
    cache_environment,
    cache_in,
    files_in,
)


def replace_pipes(folder: Path) -> None:
    """Make `os.pipe` and `os.pipe2` use named pipes in a folder, whose names are removed at once.

    The filter refuses pipes to code that calls the kernel without Python.

    Args:
        folder: The process's own, on a file system of its own.
    """
    numbers = itertools.count()

    def pipe2(flags: int) -> tuple[int, int]:
        """Two ends of a new pipe, to read and to write."""
        path = folder / f".pipe-{next(numbers)}"
        os.mkfifo(path, 0o600)
        try:
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                writer = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            except OSError:
                os.close(reader)
                raise
        finally:
            path.unlink()
        for end in (reader, writer):
            os.set_blocking(end, not flags & os.O_NONBLOCK)
            os.set_inheritable(end, not flags & os.O_CLOEXEC)
        return reader, writer

    def pipe() -> tuple[int, int]:
        """Two ends of a new pipe, to read and to write."""
        return pipe2(os.O_CLOEXEC)

    os.pipe, os.pipe2 = pipe, pipe2


# --- lockdown --------------------------------------------------------------------------------------------


class Layer(StrEnum):
    """A layer that a machine may or may not give. Giving up capabilities and rlimits are always on."""

    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    CGROUP = "cgroup"


@dataclass(frozen=True)
class Lockdown:
    """Which layers the children of a host get.

    Attributes:
        layers: All of them are put on; one that fails means that nothing is executed.
        unofficial: The operator accepts fewer layers than an official grade needs.
        hidden: Folders that must not be visible: the course, the submissions, the results.
        contained: Within a container that gives no namespaces, a user of its own stands for them. Only a
            package may be graded so.
    """

    layers: frozenset[Layer]
    unofficial: bool = False
    hidden: tuple[Path, ...] = ()
    contained: bool = False

    @property
    def trusted(self) -> bool:
        """Whether the children are trusted, and nothing isolates them."""
        return not self.layers and not self.contained

    FULL: ClassVar["Lockdown"]
    NONE: ClassVar["Lockdown"]


Lockdown.FULL = Lockdown(frozenset(Layer))
Lockdown.NONE = Lockdown(frozenset())


@dataclass(frozen=True)
class Confinement:
    """What one child puts on itself.

    Attributes:
        layers: The layers of its host.
        limits: What it may use.
        gpu: It may use the GPU: no bound on address space, and the device nodes are visible.
        who: How it changes its user.
        sees: Which of the machine's files it sees.
        mount_point: An empty folder where it builds its root.
        scratch: Its working folder if it does not have its own root.
        cgroup: Its memory cgroup, if it has one.
        given: The folder with the files that it may read in its working folder; None if there are none.
    """

    layers: frozenset[Layer]
    limits: ProcessLimits
    gpu: bool
    who: Identity
    sees: Visible
    mount_point: Path
    scratch: Path
    cgroup: Cgroup | None
    given: Path | None = None


@contextmanager
def _step(what: str) -> Iterator[None]:
    """Turn a failure of one step into a sentence."""
    try:
        yield
    except (OSError, ImportError, RuntimeError, ValueError) as error:
        raise SandboxError(
            f"The sandbox could not set up {what} ({error}), so nothing was executed. "
            "Run `grader doctor` to see what this machine gives."
        ) from error


def confine(child: Confinement) -> dict[str, str]:
    """Put every layer on the calling process, which must be a fresh fork with one thread.

    The order is forced: mounts need capabilities, the user namespace comes after them so that the process
    owns none of the mounts, Landlock and the filter come last because they forbid all of that.

    Returns:
        What only the process itself knows: `landlock` -> the interface's version.

    Raises:
        SandboxError: A layer could not be put on. The process must leave.
    """
    if Layer.SECCOMP in child.layers:
        with _step("the system-call filter"):
            # loading libseccomp needs files that are about to be out of reach
            kernel_filters.prepared_syscall_filter(pid=os.getpid(), gpu=child.gpu)
    own_root = Layer.NAMESPACES in child.layers
    cache = _cache(child)  # where it lies cannot be seen from a root of its own
    memory = address_space() + child.limits.memory_mb * MEGABYTE
    uid = child.who.uid_of(pid_in_host_proc())
    with _step("its session"):
        os.setsid()
        # the host reads /proc/<pid>/ns of a dumpable child only; it inherited the host's 0
        libc.prctl(libc.PR_SET_DUMPABLE, 1)
    if child.cgroup is not None:
        with _step("its memory cgroup"):
            child.cgroup.enter()
            _offer_to_be_killed()
    # the new root's /proc cannot be written to
    own_files = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if own_root:
        with _step("namespaces"):
            leave_shared_namespaces()
        with _step("a root file system of its own"):
            rootfs.enter_new_root(
                child.sees,
                mount_point=child.mount_point,
                scratch_mb=child.limits.scratch_mb,
                owner=uid,
                account=uid if child.who.own_uids else NOBODY,
                given=child.given,
            )
    else:
        _copy_given(child)
        if child.who.own_uids:
            os.chown(child.scratch, uid, -1)
            _offer_to_be_killed()
    _set_environment(rootfs.SCRATCH if own_root else child.scratch, cache, gpu=child.gpu)
    # the rules name files that the user who follows may be unable to reach
    ruleset = _file_rules(child, cache)
    with _step("an unprivileged user"):
        _give_up_user(child, uid, own_files)
        os.close(own_files)
    with _step("resource limits"):
        bounded = child.cgroup is None and not child.gpu
        apply_limits(child.limits, address_space_bytes=memory if bounded else None)
    details = {}
    if ruleset is not None:
        with _step("Landlock"):
            kernel_filters.enter_landlock(ruleset)
        details["landlock"] = str(kernel_filters.landlock_version())
    if Layer.SECCOMP in child.layers:
        with _step("the system-call filter"):
            kernel_filters.load_syscall_filter(gpu=child.gpu)
        if not child.gpu:
            replace_pipes(rootfs.SHARED_MEMORY if own_root else child.scratch)
    return details


def _offer_to_be_killed() -> None:
    """When memory runs out, this process is the one to be killed."""
    Path("/proc/self/oom_score_adj").write_text("1000")


def _give_up_user(child: Confinement, uid: int, own_files: int) -> None:
    """Become another user without any capability, and die with the host.

    `own_files` is a descriptor of the process's folder of /proc.
    """
    if child.who.own_uids:
        kernel_filters.drop_bounding_set()
        become_user(uid)
    elif Layer.NAMESPACES in child.layers:
        enter_user_namespace(inside=(NOBODY, NOBODY), own_files=own_files)
        kernel_filters.drop_bounding_set()
    kernel_filters.drop_all()
    # changing the user resets both
    libc.prctl(libc.PR_SET_DUMPABLE, 1)
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)


def _file_rules(child: Confinement, cache: Path | None) -> int | None:
    """Landlock's rules: what is visible, plus what only the new root has."""
    if Layer.LANDLOCK not in child.layers:
        return None
    if Layer.NAMESPACES in child.layers:
        readable = [*child.sees.readable, *child.sees.hidden, Path("/etc"), Path("/proc")]
        readable += [cache] if cache is not None else []
        writable = list(rootfs.WRITABLE)
    else:
        readable = [*child.sees.readable, Path("/proc")]
        writable = [child.scratch]
    # the CUDA driver names its threads, and does not begin without
    written = [Path("/proc/self/task")] if child.gpu else []
    with _step("Landlock"):
        return kernel_filters.landlock_rules(
            readable=readable, writable=writable, devices=child.sees.devices, written=written
        )


def _cache(child: Confinement) -> Path | None:
    """Where libraries should look for what they would download; None: nowhere."""
    if child.given is None:
        return None
    return rootfs.CACHE if Layer.NAMESPACES in child.layers else child.scratch / CACHE


def _copy_given(child: Confinement) -> None:
    """Give a child without its own root copies of the files, which nobody else reads."""
    if child.given is None:
        return
    with _step("the files that are provided"):
        for path in files_in(child.given):
            shutil.copy(path, child.scratch / path.name)
        shutil.copytree(cache_in(child.given), child.scratch / CACHE)


def _set_environment(scratch: Path, cache: Path | None, *, gpu: bool) -> None:
    """Set a working folder and an environment that reveal nothing about the host.

    The driver of a GPU reads which one it may use when a process first asks for one, which is after this.
    """
    chosen = GPU_CHOICE if gpu else ()
    kept = {n: value for n, value in os.environ.items() if n.endswith("_NUM_THREADS") or n in chosen}
    os.environ.clear()
    os.environ.update(
        kept,
        HOME=str(scratch),
        TMPDIR=str(scratch),
        MPLCONFIGDIR=str(scratch),
        MPLBACKEND="Agg",
        USER="student",
        LOGNAME="student",
        LANG="C.UTF-8",
        PATH="/usr/bin",
    )
    os.environ.update(OFFLINE if cache is None else cache_environment(cache))
    tempfile.tempdir = None
    os.chdir(scratch)
    sys.dont_write_bytecode = True
