"""Kernel filters that a process puts on itself permanently: capabilities, Landlock and allowed system calls.

Landlock refuses every path that is not on a list, TCP, and signals to others
(https://docs.kernel.org/userspace-api/landlock.html). System calls are allowed by name; every other one
answers EPERM. The list comes from training a model, drawing with matplotlib and importing scikit-learn.
The kernel's state of a shared file (locks, leases, waiters, hints, pages) could carry messages between
parallel processes, so calls that use it are allowed for a process's own files only.
"""

import errno
import functools
import importlib
import os
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grader.sandbox import libc

_VERSION_3 = 0x20080522
_HIGHEST = 63


def drop_bounding_set() -> None:
    """Empty the set of capabilities that could ever be gained. Needs CAP_SETPCAP."""
    for capability in range(_HIGHEST + 1):
        try:
            libc.prctl(libc.PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno != 22:  # EINVAL: the kernel knows no capability of this number
                raise


def drop_all() -> None:
    """Empty the ambient, effective, permitted and inheritable sets, and forbid gaining any by exec."""
    libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL)
    libc.checked("capset", struct.pack("<Ii", _VERSION_3, 0), bytes(24))
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)


# --- landlock --------------------------------------------------------------------------------------------


_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_MAKE_FIFO, _REFER, _TRUNCATE = 1 << 10, 1 << 13, 1 << 14
# rights to files that each version of the interface added
_HANDLED_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_TCP = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _TRUNCATE | _REFER | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO


def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 without it."""
    try:
        return libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def landlock_rules(
    *, readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path], written: Iterable[Path]
) -> int:
    """A descriptor of rules that refuse every file except these.

    Args:
        readable: Folders and files that may be read; those in `writable` may also be changed, with their
            content.
        devices: Nodes that may be read and written.
        written: Folders whose files may be written, but not made or removed.

    Returns:
        The descriptor, for `enter`.

    Raises:
        OSError: The kernel does not offer Landlock.
    """
    version = libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    handled = (1 << _HANDLED_BITS.get(version, 16)) - 1
    net = _NET_TCP if version >= 4 else 0
    scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    attributes = struct.pack("QQQ", handled, net, scope)
    # an older kernel takes a shorter structure
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, attributes[:size], size, 0)
    try:
        for path in readable:
            _allow_path(ruleset, path, _READ & handled)
        for path in writable:
            _allow_path(ruleset, path, (_READ | _WRITE) & handled)
        for path in devices:
            _allow_path(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | 1 << 15) & handled)
        for path in written:
            _allow_path(ruleset, path, (_WRITE_FILE | _TRUNCATE) & handled)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def enter_landlock(ruleset: int) -> None:
    """Put the calling process under the rules permanently, and close them. It must have set no_new_privs."""
    libc.system_call(libc.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow_path(ruleset: int, path: Path, rights: int) -> None:
    """Add a rule for what is at and below the path."""
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            rights &= _FILE_RIGHTS | 1 << 15
        libc.system_call(libc.SYS_LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


# --- syscall filter --------------------------------------------------------------------------------------


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
_GPU = "mincore mlock munlock sysinfo ioctl madvise mbind get_mempolicy pipe2 membarrier bind listen"

# --- by argument ------------------------------------------------------------------------------------------

# fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC. Not: leases, notifications, owners of
# signals, hints about a file, sizes of pipes
_FCNTL = (0, 1, 2, 3, 4, 1030)
# F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW report success without a lock, so that libraries go on
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
# For the CUDA driver, which opens a socket of its own, to hand its memory to other processes, and does not
# begin without. Nobody can connect to it, and it can connect to nothing: it goes on if the daemon that shares
# out a GPU is not there. What is bound has a name in the process's own network namespace.
_UNIX, _SOCKET_KIND, _SEQUENCED = 1, 0xF, 5  # AF_UNIX, the kind among flags, SOCK_SEQPACKET
_SOCKET_LEVEL, _PASS_CREDENTIALS = 1, 16  # SOL_SOCKET, SO_PASSCRED
# mknod: only named pipes, which `lockdown.replace_pipes` uses
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
def prepared_syscall_filter(*, pid: int, gpu: bool) -> bytes:
    """The filter in the kernel's format: a host prepares it once for all its children.

    libseccomp would assemble it anew for every process that loads it, which takes 2 ms.

    Args:
        pid: The only process that may get signals, as it numbers itself.
        gpu: Allow what the GPU's driver needs.

    Raises:
        ImportError, OSError, RuntimeError: The binding, or libseccomp itself, is not installed.
    """
    seccomp = importlib.import_module("pyseccomp")
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    # calls of another architecture (int 0x80, x32) are not needed
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
    """Allow the calls of BY_ARGUMENT only for what they do to the process's own objects."""
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
    if gpu:
        rule(seccomp.ALLOW, "socket", equals(0, _UNIX), masked(1, _SOCKET_KIND, _SEQUENCED))
        rule(seccomp.ALLOW, "setsockopt", equals(1, _SOCKET_LEVEL), equals(2, _PASS_CREDENTIALS))
        rule(seccomp.ERRNO(errno.ENOENT), "connect")
    else:
        rule(seccomp.ALLOW, "mbind", equals(5, 0))
    rule(seccomp.ALLOW, "mknod", masked(1, _FILE_KIND, _NAMED_PIPE))
    rule(seccomp.ALLOW, "mknodat", masked(2, _FILE_KIND, _NAMED_PIPE))
    rule(seccomp.ALLOW, "futex", masked(1, _FUTEX_PRIVATE, _FUTEX_PRIVATE))
    compared_bits = _FUTEX_PRIVATE | _FUTEX_COMMAND
    for command in _FUTEX_WAITS:
        # without a time limit the caller looks again; with one, the time is up
        shared = masked(1, compared_bits, command)
        rule(seccomp.ERRNO(errno.EAGAIN), "futex", shared, equals(3, 0))
        rule(seccomp.ERRNO(errno.ETIMEDOUT), "futex", shared, seccomp.Arg(3, seccomp.NE, 0))
    for command in _FUTEX_WAKES:
        rule(no_effect, "futex", masked(1, compared_bits, command))


def load_syscall_filter(*, gpu: bool = False) -> None:
    """Allow the calling process only the listed calls from now on.

    It must have set no_new_privs, and have one thread: the filter applies to the calling thread and those
    that it starts.

    Raises:
        ImportError, OSError, RuntimeError: libseccomp is not installed, or the kernel refuses the filter.
    """
    libc.load_filter(prepared_syscall_filter(pid=os.getpid(), gpu=gpu))
