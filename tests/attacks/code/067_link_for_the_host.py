"""Leaves a link for the host to follow.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: 'found \\[\\]', 2
"""


def evaluate(model, data_loader, loss_history):
    import os

    found = []
    for call in (os.symlink, os.link):
        try:
            call(SECRET_FILE, "/sandbox/link")
            found.append("planted-9")
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(planted(found), len(found))
