"""Namespaces of a host and of the processes that it forks.

A host with locked-down children is process 1 of a PID namespace of its own (and, without root, in a user
namespace of its own): so it may make a PID namespace per child, step back afterwards, and whatever is left
when it dies dies with it.
"""

import os
import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

from grader.sandbox import libc
from grader.sandbox.identity import Identity, enter_user_namespace

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
