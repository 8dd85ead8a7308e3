"""Copies another process's memory and descriptors.

Stopped by: the system-call filter
Outcome: nothing is found
Fails: evaluate
Says: \\[\\(-1, 1\\), \\(-1, 1\\), \\(-1, 1\\)\\]
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls = (310, HOST_PID, 0, 0, 0, 0, 0), (434, HOST_PID, 0), (438, 3, 0, 0)
    raise ValueError([(libc.syscall(*call), ctypes.get_errno()) for call in calls])
