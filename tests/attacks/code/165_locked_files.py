"""Locks, leases and hints at files that every worker sees, for a worker beside it to find.

Stopped by: the system-call filter: locks answer as if they were taken and have no effect, the rest is refused
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
"""


def evaluate(model, data_loader, loss_history):
    import fcntl
    import os
    import struct

    found = []
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    with open(os.__file__) as one, open(os.__file__) as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            found.append(f"flock {error}")
        fcntl.lockf(one, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.fcntl(one, 37, lock)
        for name, command, value in (
            ("F_GETLK", fcntl.F_GETLK, lock),
            ("F_OFD_GETLK", 36, lock),
            ("F_SETLEASE", 1024, fcntl.F_RDLCK),
            ("F_GETLEASE", 1025, 0),
            ("F_NOTIFY", 1026, 1),
            ("F_SET_RW_HINT", 1036, struct.pack("Q", 3)),
            ("F_GET_RW_HINT", 1035, bytes(8)),
            ("F_SETSIG", 10, 0),
            ("F_SETPIPE_SZ", 1031, 65536),
            ("F_SETLEASE, wide", 1024 + 2**31, 0),
        ):
            try:
                found.append((name, fcntl.fcntl(other, command, value)))
            except (OSError, OverflowError, ValueError):
                pass
    raise ValueError(found)
