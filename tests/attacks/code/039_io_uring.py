"""Does forbidden calls through io_uring.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “\\[\\(-1, 1\\), \\(-1, 1\\)\\]”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls = (
        lambda: libc.syscall(425, 8, (ctypes.c_char * 120)()),
        lambda: libc.syscall(426, 3, 1, 0, 0, 0, 0),
    )
    raise ValueError([(call(), ctypes.get_errno()) for call in calls])
