"""Starts a daemon in a session of its own that outlives it.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: 'found \\[\\]', 4
"""


def evaluate(model, data_loader, loss_history):
    import os

    found = []
    for call in (
        os.setsid,
        os.fork,
        lambda: os.setpgid(0, 0),
        lambda: os.posix_spawn("/bin/sleep", ["sleep", "60"], {}),
    ):
        try:
            call()
            found.append("planted-8")
        except OSError as error:
            found.append(type(error).__name__)
    raise ValueError(planted(found), len(found))
