"""Connects to a socket of the machine, by path and by abstract name.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: PermissionError
"""


def evaluate(model, data_loader, loss_history):
    import socket

    socket.socket(socket.AF_UNIX).connect("\0grader")
