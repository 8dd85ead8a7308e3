"""Stops every clock of its process and never returns.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: evaluate
Says: did not return within
"""


def evaluate(model, data_loader, loss_history):
    import time

    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: 0.0)
    while time.monotonic() < 1:
        pass
