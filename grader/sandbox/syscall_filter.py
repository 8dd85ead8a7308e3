"""The system calls that a locked-down process may make, by name; every other one answers EPERM.

The list was derived from training a model, drawing with matplotlib and importing scikit-learn.

Processes side by side see the same files, read-only. What the kernel keeps for such a file on behalf of those
who have it open (locks, leases, waiters, hints, pages) would carry messages between them, and so would what
it counts for the whole machine. Calls that do such things among others are allowed for the others only.
"""

import errno
import functools
import importlib
import os
import tempfile
from typing import Any

from grader.sandbox import libc

_FILES = """
    read write open close stat fstat lstat lseek pread64 pwrite64 readv writev preadv pwritev access faccessat
    faccessat2 openat newfstatat fstatat64 statx statfs fstatfs getcwd chdir fchdir rename renameat renameat2
    mkdir mkdirat rmdir unlink unlinkat readlink readlinkat truncate ftruncate getdents64 fsync
    fdatasync fallocate sendfile copy_file_range utimensat umask dup dup2 dup3
"""
_WAITING = """
    poll ppoll select pselect6 eventfd eventfd2 epoll_create1 epoll_ctl epoll_wait epoll_pwait
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday times
"""
_MEMORY = "mprotect munmap mremap brk"
_THREADS = """
    set_robust_list get_robust_list set_tid_address rseq gettid getpid getppid getpgrp
    sched_yield sched_setaffinity sched_getaffinity sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min arch_prctl exit exit_group
"""
_SIGNALS = "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall"
_FACTS = """
    uname getrlimit prlimit64 getrusage getuid geteuid getgid getegid getrandom getcpu
"""
# for the CUDA driver; not yet run on a GPU
_GPU = "mincore mlock munlock sysinfo ioctl madvise mbind get_mempolicy pipe2 membarrier"

# --- by argument ------------------------------------------------------------------------------------------

# fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not: leases, notifications, owners of
# signals, hints about a file, sizes of pipes
_FCNTL = (0, 1, 2, 3, 4, 1030)
# F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW answer that they took the lock, so that libraries go on
_FCNTL_LOCKS = (6, 7, 37, 38)
# ioctl: TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what file objects and progress bars ask
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# madvise: NORMAL to DONTNEED, FREE, REMOVE, [DONT]FORK, [NO]HUGEPAGE, [DONT]DUMP, WIPEONFORK, KEEPONFORK,
# POPULATE_*, GUARD_*. Not: taking a file's pages out of everybody's memory, merging equal pages
_MADVISE = (0, 1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23, 102, 103)
# posix_fadvise: NORMAL, RANDOM, SEQUENTIAL, WILLNEED, NOREUSE. DONTNEED takes a file out of everybody's
# memory: it answers 0 without effect
_FADVISE, _FADVISE_DONTNEED = (0, 1, 2, 3, 5), 4
_MAP_HUGETLB = 0x40000  # from a pool that the whole machine shares
# get_mempolicy: of the caller. Not: where a page of a file lies
_GET_MEMPOLICY = (0, 4)
# membarrier: QUERY, [REGISTER_]PRIVATE_EXPEDITED, [..._]SYNC_CORE. Not: the processors of others
_MEMBARRIER = (0, 8, 16, 32, 64)
# mknod: named pipes alone, of which `pipes.py` makes nameless ones
_FILE_KIND, _NAMED_PIPE = 0o170000, 0o010000
# futex: within a process only. A word in a file that two processes map is one futex for both, even read-only.
# glibc waits by such a futex for the end of a thread and libstdc++ for a future, in loops that look again
# when a wait is over at once
_FUTEX_PRIVATE, _FUTEX_COMMAND = 0x80, 0x7F
_FUTEX_WAITS = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET
_FUTEX_WAKES = (1, 3, 4, 5, 10)  # FUTEX_WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAKE_BITSET

BY_ARGUMENT = (
    *("fcntl", "flock", "ioctl", "madvise", "fadvise64", "mmap", "mbind", "get_mempolicy", "membarrier"),
    *("mknod", "mknodat", "futex"),
)
ALLOWED = tuple(" ".join((_FILES, _WAITING, _MEMORY, _THREADS, _SIGNALS, _FACTS)).split())
# these act on a process, which must be the caller
OWN_PROCESS_ONLY = ("kill", "tgkill")
_CLONE_THREAD = 0x00010000


@functools.cache
def prepared_filter(*, pid: int, gpu: bool) -> bytes:
    """The filter as the kernel takes it: a host prepares it once for all its children.

    libseccomp would assemble it anew for every process that loads it, which takes 2 ms.

    Args:
        pid: The only process that signals may go to, as it numbers itself.
        gpu: Allow what the GPU's driver needs.

    Raises:
        ImportError, OSError, RuntimeError: The binding, or libseccomp itself, is not installed.
    """
    seccomp = importlib.import_module("pyseccomp")
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    # another architecture's calls (int 0x80, x32) have no business here
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    native = seccomp.system_arch()
    for name in (*ALLOWED, *(_GPU.split() if gpu else ())):
        # an older libseccomp does not know the newest names: leaving one out forbids it
        if seccomp.resolve_syscall(native, name) != -1:
            rules.add_rule(seccomp.ALLOW, name)
    for name in OWN_PROCESS_ONLY:
        rules.add_rule(seccomp.ALLOW, name, seccomp.Arg(0, seccomp.EQ, pid))
    rules.add_rule(seccomp.ALLOW, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, _CLONE_THREAD))
    _add_rules_by_argument(rules, gpu=gpu)
    # the filter cannot read what clone3 points to; glibc falls back to clone
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as stream:
        rules.export_bpf(stream)
        stream.seek(0)
        return stream.read()


def _add_rules_by_argument(rules: Any, *, gpu: bool) -> None:
    """Allow what the calls of BY_ARGUMENT do to one's own objects alone."""
    seccomp = importlib.import_module("pyseccomp")

    def rule(action: int, name: str, *conditions: Any) -> None:
        rules.add_rule(action, name, *conditions)

    def equals(place: int, value: int) -> Any:
        return seccomp.Arg(place, seccomp.EQ, value)

    def masked(place: int, mask: int, value: int) -> Any:
        return seccomp.Arg(place, seccomp.MASKED_EQ, mask, value)

    no_effect = seccomp.ERRNO(0)
    rule(no_effect, "flock")
    for command in _FCNTL:
        rule(seccomp.ALLOW, "fcntl", equals(1, command))
    for command in _FCNTL_LOCKS:
        rule(no_effect, "fcntl", equals(1, command))
    for advice in _FADVISE:
        rule(seccomp.ALLOW, "fadvise64", equals(3, advice))
    rule(no_effect, "fadvise64", equals(3, _FADVISE_DONTNEED))
    rule(seccomp.ALLOW, "mmap", masked(3, _MAP_HUGETLB, 0))
    for request in () if gpu else _IOCTL:
        rule(seccomp.ALLOW, "ioctl", equals(1, request))
    for advice in () if gpu else _MADVISE:
        rule(seccomp.ALLOW, "madvise", equals(2, advice))
    for flags in () if gpu else _GET_MEMPOLICY:
        rule(seccomp.ALLOW, "get_mempolicy", equals(4, flags))
    for command in () if gpu else _MEMBARRIER:
        rule(seccomp.ALLOW, "membarrier", equals(0, command))
    if not gpu:
        rule(seccomp.ALLOW, "mbind", equals(5, 0))
    rule(seccomp.ALLOW, "mknod", masked(1, _FILE_KIND, _NAMED_PIPE))
    rule(seccomp.ALLOW, "mknodat", masked(2, _FILE_KIND, _NAMED_PIPE))
    rule(seccomp.ALLOW, "futex", masked(1, _FUTEX_PRIVATE, _FUTEX_PRIVATE))
    whole = _FUTEX_PRIVATE | _FUTEX_COMMAND
    for command in _FUTEX_WAITS:
        # without a limit of time the caller looks again; with one, the time is over
        shared = masked(1, whole, command)
        rule(seccomp.ERRNO(errno.EAGAIN), "futex", shared, equals(3, 0))
        rule(seccomp.ERRNO(errno.ETIMEDOUT), "futex", shared, seccomp.Arg(3, seccomp.NE, 0))
    for command in _FUTEX_WAKES:
        rule(no_effect, "futex", masked(1, whole, command))


def load_filter(*, gpu: bool = False) -> None:
    """Allow the calling process nothing but the list from now on.

    It must have set no_new_privs, and have one thread: the filter holds the calling thread and those that it
    starts.

    Raises:
        ImportError, OSError, RuntimeError: libseccomp is not installed, or the kernel refuses the filter.
    """
    libc.load_filter(prepared_filter(pid=os.getpid(), gpu=gpu))
