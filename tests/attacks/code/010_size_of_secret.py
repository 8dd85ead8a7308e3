"""Asks for the size and the date of a secret file.

Stopped by: a root file system of its own
Outcome: nothing is found
Fails: evaluate
Says: FileNotFoundError
"""


def evaluate(model, data_loader, loss_history):
    import os

    raise ValueError(os.stat(SECRET_FILE))
