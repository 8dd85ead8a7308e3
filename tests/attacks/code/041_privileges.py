"""Unshares, changes its root and its user, mounts.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “\\[\\(-1, 1\\), \\(-1, 1\\), \\(-1, 1\\), \\(-1, 1\\), \\(-1, 1\\), \\(-1, 1\\)\\]”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    calls = (
        lambda: libc.unshare(0x20000),
        lambda: libc.chroot(b"/"),
        lambda: libc.setuid(0),
        lambda: libc.setns(4, 0),
        lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        lambda: libc.syscall(155, b".", b"."),
    )
    raise ValueError([(call(), ctypes.get_errno()) for call in calls])
