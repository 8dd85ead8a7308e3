"""Starts threads without end.

Stopped by: the limit on threads
Outcome: nothing happens
Fails: evaluate
Says: True, .can't start new thread
"""


def evaluate(model, data_loader, loss_history):
    import threading
    import time

    try:
        for started in range(5000):
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    except RuntimeError as error:
        raise ValueError(started < 64, str(error))
