"""Stops its own process.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: evaluate
Says: did not return within
"""


def evaluate(model, data_loader, loss_history):
    import os
    import signal
    import time

    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(3600)
