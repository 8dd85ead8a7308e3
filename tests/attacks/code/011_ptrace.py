"""Attaches itself to the host as a debugger.

Stopped by: the system-call filter
Outcome: nothing is found
Fails: evaluate
Says: \\[\\(-1, 1\\), \\(-1, 1\\)\\]
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    raise ValueError([(libc.ptrace(16, pid, 0, 0), ctypes.get_errno()) for pid in (1, HOST_PID)])
