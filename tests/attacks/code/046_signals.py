"""Kills every process that it can, and the host by its number.

Stopped by: the system-call filter, the PID namespace
Outcome: nothing happens
Fails: evaluate
Says: 'found \\[\\]', 4
"""


def evaluate(model, data_loader, loss_history):
    import os

    found = []
    for pid in (-1, 0, HOST_PID, 2):
        try:
            os.kill(pid, 9)
            found.append("planted-7")
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(planted(found), len(found))
