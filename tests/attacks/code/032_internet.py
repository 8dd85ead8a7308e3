"""Opens a connection to another machine.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: PermissionError
"""


def evaluate(model, data_loader, loss_history):
    import socket

    socket.create_connection(("127.0.0.1", 80))
