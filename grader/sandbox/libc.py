"""The system calls that Python's standard library does not offer, with errno turned into OSError."""

import ctypes
import functools
import os
import platform
import sys
from typing import Any

# Names as in the kernel's headers, so that a reader can look them up.
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 2

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446
_SECCOMP_MODE_FILTER = 2
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


@functools.cache
def _library() -> ctypes.CDLL:
    """The C library; loaded on first use, because Windows has none."""
    return ctypes.CDLL(None, use_errno=True)


def _argument(value: int | bytes | None) -> Any:
    return ctypes.c_long(value) if isinstance(value, int) else value


def checked(name: str, *arguments: int | bytes | None) -> int:
    """What the C function returns.

    Raises:
        OSError: It returned a negative number; the message begins with its name.
    """
    result: int = getattr(_library(), name)(*map(_argument, arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def system_call(number: int, *arguments: int | bytes | None) -> int:
    """What the numbered system call returns, for those without a C function.

    Raises:
        OSError: It failed.
    """
    return checked("syscall", number, *arguments)


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)`; omitted arguments are 0.

    Raises:
        OSError: It failed.
    """
    return checked("prctl", option, *arguments, *(0,) * (4 - len(arguments)))


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of <linux/filter.h>."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def load_filter(instructions: bytes) -> None:
    """Put a system-call filter on the calling thread.

    Args:
        instructions: The filter in the kernel's form, 8 bytes each (`struct sock_filter`).

    Raises:
        OSError: The kernel refuses it, or no_new_privs was not set.
    """
    program = _FilterProgram(len(instructions) // 8, instructions)
    prctl(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))


def keep_freed_memory() -> None:
    """Let the process keep memory that it frees, for when it needs as much again: `mallopt(3)`.

    A training step needs what the step before it freed; fetching it from the kernel again costs some 2 % of
    the time. The kept memory, up to 256 MB, counts as used wherever memory is bounded. C libraries other than
    glibc, and other systems, are left as they are.
    """
    if sys.platform == "linux" and hasattr(_library(), "mallopt"):
        checked("mallopt", M_TRIM_THRESHOLD, 1 << 28)
        checked("mallopt", M_MMAP_THRESHOLD, 1 << 25)  # the most that glibc accepts


def pivot_root() -> None:
    """Make the working directory the root and detach the old root.

    Raises:
        OSError: It failed, or the call's number on this architecture is not known.
    """
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root: its number on {platform.machine()} is not known")
    system_call(number, b".", b".")
    checked("umount2", b".", MNT_DETACH)
