"""Reads the memory of the process that forked it.

Stopped by: the PID namespace
Outcome: nothing is found
Fails: evaluate
Says: FileNotFoundError
"""


def evaluate(model, data_loader, loss_history):
    import os

    with open(f"/proc/{os.getppid()}/mem", "rb", buffering=0) as memory:
        raise ValueError(planted(memory.read(4096)))
