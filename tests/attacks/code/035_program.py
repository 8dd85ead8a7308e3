"""Starts another program.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: PermissionError
"""


def evaluate(model, data_loader, loss_history):
    import subprocess

    subprocess.run(["/usr/bin/python3", "-c", "print(1)"])
