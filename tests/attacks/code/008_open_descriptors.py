"""Reads what other open descriptors lead to.

Stopped by: descriptors are closed
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
"""


def evaluate(model, data_loader, loss_history):
    import os
    import stat

    found = []
    for number in range(1024):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        if not stat.S_ISFIFO(mode) and not (number == 0 and stat.S_ISCHR(mode)):
            found.append((number, mode))
    raise ValueError(found)
