"""Reads what other open descriptors lead to.

Stopped by: descriptors are closed
Outcome: nothing is found
Fails: evaluate
Says: ValueError: \\[\\]
"""


def evaluate(model, data_loader, loss_history):
    import os

    links = [
        os.readlink(f"/proc/self/fd/{number}")
        for number in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{number}")
    ]
    raise ValueError([link for link in links if not link.startswith(("pipe:", "/dev/null"))])
