"""The user and the namespaces of a host and of the processes that it forks.

A locked-down process gets a uid of its own if the host is root, else it is nobody in a user namespace. A host
with locked-down children is process 1 of its own PID namespace (and, without root, in its own user
namespace). So it may make a PID namespace per child and step back afterwards, and everything left ends with
it. `lockdown` decides in which order a process enters them.
"""

import os
import select
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from grader.sandbox import libc

NOBODY = 65534
FIRST_UID = 200_000
# the greatest pid that Linux allows: one uid per process that can be alive
MOST_UIDS = 1 << 22
_MOST_ROUNDS = 100  # what has ended and was not waited for yet still counts as a process
# chown, setgid, setuid, setpcap
_USER_CAPABILITIES = (0, 6, 7, 8)
_SYS_ADMIN = 21  # for namespaces, without a user namespace


@dataclass(frozen=True)
class Identity:
    """How a process that is locked down changes its user.

    Attributes:
        own_uids: The host may give every process a uid of its own; otherwise a user namespace is used.
        first_uid, uids: The range of these uids, as far as this machine's (or container's) map goes.
    """

    own_uids: bool
    first_uid: int = FIRST_UID
    uids: int = MOST_UIDS

    def uid_of(self, pid: int) -> int:
        """The uid of the process that has this pid in the host's view: its own while it lives."""
        return self.first_uid + pid % self.uids if self.own_uids else os.geteuid()

    @property
    def unused_uid(self) -> int:
        """A uid of the range that no process ever gets."""
        return self.first_uid + self.uids


def identity(*, contained: bool = False) -> Identity:
    """What the calling process may do.

    Args:
        contained: No namespaces will be made, so that less is needed.
    """
    needed = _USER_CAPABILITIES if contained else (*_USER_CAPABILITIES, _SYS_ADMIN)
    effective = int(status_fields("self")["CapEff"], 16)
    uids = _spare_uids(Path("/proc/self/uid_map").read_text())
    if uids is None or not all(effective >> bit & 1 for bit in needed):
        return Identity(own_uids=False)
    return Identity(True, *uids)


def status_fields(pid: int | str) -> dict[str, str]:
    """The lines of `/proc/<pid>/status`, by name."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def pid_in_host_proc() -> int:
    """The calling process's pid as the mounted /proc numbers it, whatever PID namespace it is in."""
    return int(Path("/proc/self").readlink().name)


def _spare_uids(uid_map: str) -> tuple[int, int] | None:
    """(first, count) of uids that nobody uses, within what the map covers; None when it covers too few."""
    ranges = [(int(start), int(count)) for start, _, count in (line.split() for line in uid_map.splitlines())]
    for start, count in ranges:
        spare = start + count - FIRST_UID
        if start <= FIRST_UID and spare > 10_000:
            return FIRST_UID, min(spare - 1, MOST_UIDS)
    start, count = max(ranges, key=lambda entry: entry[1])
    # containers often map 65,536 ids: the upper half of those has no users
    return (start + count // 2, count // 2 - 2) if count >= 10_000 else None


def become_user(uid: int) -> None:
    """Give up root for the uid, with no other groups. Needs CAP_SETUID; takes every capability away."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def end_processes_of(uid: int, unused_uid: int) -> None:
    """Kill every process of a user whose own process has ended: what it left behind ends with it.

    The caller must be root. A fork becomes the user, because signals to a user's processes reach all of them
    at once, however fast they fork. It is the user by its effective uid alone, so that none of them can kill
    it first.

    Args:
        uid: Nobody else's.
        unused_uid: A uid without processes.
    """
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        os.setgroups([])
        os.setresgid(unused_uid, unused_uid, unused_uid)
        os.setresuid(unused_uid, uid, unused_uid)
        for _ in range(_MOST_ROUNDS):
            os.kill(-1, signal.SIGKILL)
    finally:
        # nobody is left, or nobody can be reached
        os._exit(0)


def enter_user_namespace(*, inside: tuple[int, int] | None = None, own_files: int | None = None) -> None:
    """Enter a new user namespace that maps the caller's uid and gid alone.

    Args:
        inside: (uid, gid) that the caller has within; None keeps the numbers.
        own_files: A descriptor of the caller's own folder in /proc, if that can no longer be seen.

    Raises:
        OSError: The machine does not allow it, or the process has several threads.
    """
    uid, gid = os.geteuid(), os.getegid()
    inside_uid, inside_gid = inside or (uid, gid)
    # the files below belong to root while the process is not dumpable
    libc.prctl(libc.PR_SET_DUMPABLE, 1)
    libc.checked("unshare", libc.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside_uid} {uid} 1"),
        ("gid_map", f"{inside_gid} {gid} 1"),
    ):
        path = f"/proc/self/{name}" if own_files is None else name
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=own_files)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)


# --- namespaces ------------------------------------------------------------------------------------------


# how long a host may take to clean up after its starter is gone
_GRACE_SECONDS = 10
CHILD_NAMESPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")


def enter_host_namespaces(who: Identity) -> None:
    """Go on as process 1 of a new PID namespace; the calling process stays behind to guard it.

    The guard ends with the host, and ends the host that outlives its lifeline (standard input) for long.

    Raises:
        OSError: The machine does not allow it, or the process has several threads.
    """
    if not who.own_uids:
        enter_user_namespace()
    libc.checked("unshare", libc.CLONE_NEWPID)
    pid = os.fork()
    if pid:
        _guard(pid)
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)


def _guard(pid: int) -> NoReturn:
    """Wait for the host and leave as it did; leave without it when its starter is gone and it hangs."""
    # an inherited descriptor kept open here would hide the host's death from those who wait for it
    os.closerange(1, os.sysconf("SC_OPEN_MAX"))
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    ended = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    # no events: only the end of the lifeline is reported, not what is written into it
    waiting.register(0, 0)
    if ended not in dict(waiting.poll()):
        waiting.unregister(0)
        if not waiting.poll(_GRACE_SECONDS * 1000):
            # the host asked to be killed when this process ends
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def own_pid_namespace() -> int:
    """A descriptor of the calling process's PID namespace. Take it while the process is dumpable."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)


def fork_first_process(own_namespace: int) -> int:
    """Fork a process that is the first of a new PID namespace; 0 in that process, else its pid.

    One fork suffices because the caller steps back into `own_namespace`, where it may start threads and make
    the next namespace: a second fork costs 13 to 23 ms with PyTorch loaded.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    libc.checked("unshare", libc.CLONE_NEWPID)
    try:
        pid = os.fork()
    except OSError:
        libc.checked("setns", own_namespace, libc.CLONE_NEWPID)
        raise
    if pid:
        libc.checked("setns", own_namespace, libc.CLONE_NEWPID)
    return pid


def leave_shared_namespaces() -> None:
    """Enter new mount, network, IPC, host-name and cgroup namespaces."""
    libc.checked(
        "unshare",
        libc.CLONE_NEWNS | libc.CLONE_NEWNET | libc.CLONE_NEWIPC | libc.CLONE_NEWUTS | libc.CLONE_NEWCGROUP,
    )
    libc.checked("sethostname", b"grader", 6)


def namespace_links(pid: int | str) -> dict[str, str]:
    """Kind -> identity (`pid:[4026532178]`) of the process's namespaces, as seen from outside."""
    return {kind: str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in (*CHILD_NAMESPACES, "user")}
