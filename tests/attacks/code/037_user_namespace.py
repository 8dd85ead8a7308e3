"""Becomes root in a user namespace of its own.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “\\[\\(-1, 1\\), \\(-1, 1\\)\\]”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls = (lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), lambda: libc.unshare(0x10000000))
    raise ValueError([(call(), ctypes.get_errno()) for call in calls])
