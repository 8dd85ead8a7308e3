"""Lists and reads the submissions of others.

Stopped by: a root file system of its own
Outcome: nothing is found
Fails: evaluate
Says: FileNotFoundError
"""


def evaluate(model, data_loader, loss_history):
    import os

    raise ValueError([planted(open(f"{NEIGHBOR}/{name}").read()) for name in os.listdir(NEIGHBOR)])
