"""Catches and ignores every signal, and never returns.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: evaluate
Says: did not return within
"""


def evaluate(model, data_loader, loss_history):
    import signal

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass
