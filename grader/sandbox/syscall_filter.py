"""The system calls that a locked-down process may make, by name; every other one answers EPERM.

The list was derived from training a model, drawing with matplotlib and importing scikit-learn.
"""

import errno
import functools
import importlib
import os
import tempfile

from grader.sandbox import libc

_FILES = """
    read write open close stat fstat lstat lseek pread64 pwrite64 readv writev preadv pwritev access faccessat
    faccessat2 openat newfstatat fstatat64 statx statfs fstatfs getcwd chdir fchdir rename renameat renameat2
    mkdir mkdirat rmdir unlink unlinkat readlink readlinkat truncate ftruncate getdents64 fcntl flock fsync
    fdatasync fadvise64 fallocate sendfile copy_file_range utimensat umask ioctl dup dup2 dup3
"""
_WAITING = """
    poll ppoll select pselect6 pipe2 eventfd eventfd2 epoll_create1 epoll_ctl epoll_wait epoll_pwait
    nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday times
"""
_MEMORY = "mmap mprotect munmap mremap madvise brk mbind get_mempolicy membarrier"
_THREADS = """
    futex futex_waitv set_robust_list get_robust_list set_tid_address rseq gettid getpid getppid getpgrp
    sched_yield sched_setaffinity sched_getaffinity sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min arch_prctl exit exit_group
"""
_SIGNALS = "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall"
_FACTS = """
    uname sysinfo getrlimit prlimit64 getrusage getuid geteuid getgid getegid getrandom getcpu
"""
# for the CUDA driver; not yet run on a GPU
_GPU = "mincore mlock munlock"

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
    # the filter cannot read what clone3 points to; glibc falls back to clone
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as stream:
        rules.export_bpf(stream)
        stream.seek(0)
        return stream.read()


def load_filter(*, gpu: bool = False) -> None:
    """Allow the calling process nothing but the list from now on.

    It must have set no_new_privs, and have one thread: the filter holds the calling thread and those that it
    starts.

    Raises:
        ImportError, OSError, RuntimeError: libseccomp is not installed, or the kernel refuses the filter.
    """
    libc.load_filter(prepared_filter(pid=os.getpid(), gpu=gpu))
