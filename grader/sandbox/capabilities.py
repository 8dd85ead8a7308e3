"""Giving up every capability, for good."""

import struct

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
