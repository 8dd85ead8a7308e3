"""Walks down the frames for secrets in their variables.

Stopped by: no secret is in the worker's memory
Outcome: nothing is found
Fails: evaluate
Says: True, 'found \\[\\]'
"""


def evaluate(model, data_loader, loss_history):
    import sys

    frame, names = sys._getframe(), []
    while frame:
        names += [
            f"{name}={str(value)[:5000]}" for name, value in {**frame.f_globals, **frame.f_locals}.items()
        ]
        frame = frame.f_back
    raise ValueError(len(names) > 100, planted(names))
