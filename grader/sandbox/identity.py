"""Which user a locked-down process becomes: a uid of its own as root, else nobody in a user namespace."""

import os
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import libc

NOBODY = 65534
FIRST_UID = 200_000
# the greatest pid that Linux allows: one uid per process that can be alive
MOST_UIDS = 1 << 22
# chown, setgid, setuid, setpcap, sys_admin
_NEEDED_CAPABILITIES = (0, 6, 7, 8, 21)


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


def identity() -> Identity:
    """What the calling process may do."""
    effective = int(status_fields("self")["CapEff"], 16)
    uids = _spare_uids(Path("/proc/self/uid_map").read_text())
    if uids is None or not all(effective >> bit & 1 for bit in _NEEDED_CAPABILITIES):
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
            return FIRST_UID, min(spare, MOST_UIDS)
    start, count = max(ranges, key=lambda entry: entry[1])
    # containers often map 65,536 ids: the upper half of those has no users
    return (start + count // 2, count // 2 - 2) if count >= 10_000 else None


def become_user(uid: int) -> None:
    """Give up root for the uid, with no other groups. Needs CAP_SETUID; takes every capability away."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def enter_user_namespace(*, inside: tuple[int, int] | None = None, own_files: int | None = None) -> None:
    """Enter a new user namespace that maps the caller's uid and gid alone.

    Args:
        inside: (uid, gid) that the caller has within; None keeps the numbers.
        own_files: A descriptor of the caller's own folder of /proc, where that cannot be seen any more.

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
