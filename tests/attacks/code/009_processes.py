"""Lists the machine's processes.

Stopped by: the PID namespace
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\['1'\\]”
"""


def evaluate(model, data_loader, loss_history):
    import os

    raise ValueError([name for name in os.listdir("/proc") if name.isdigit()])
