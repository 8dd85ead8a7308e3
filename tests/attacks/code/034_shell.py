"""Starts a shell.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “\\(-1, False\\)”|PermissionError|ValueError: “\\(\\d+, False\\)”
"""


def evaluate(model, data_loader, loss_history):
    import os

    raise ValueError(os.system("echo planted-3 > /tmp/shell"), os.path.exists("/tmp/shell"))
