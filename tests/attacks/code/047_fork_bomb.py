"""Forks without end.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “0”
"""


def evaluate(model, data_loader, loss_history):
    import os

    started = 0
    for _ in range(2000):
        for call in (os.fork, os.forkpty):
            try:
                started += call() != -1
            except OSError:
                pass
    raise ValueError(started)
