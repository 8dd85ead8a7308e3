"""Forks.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: PermissionError
"""


def evaluate(model, data_loader, loss_history):
    import os

    os.fork()
