"""Clones itself by the call whose flags a filter cannot read.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: \\[\\(-1, 38\\)\\]
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls = (lambda: libc.syscall(435, (ctypes.c_uint64 * 11)(), 88),)
    raise ValueError([(call(), ctypes.get_errno()) for call in calls])
