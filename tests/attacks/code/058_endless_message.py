"""Raises an exception with a message of a hundred megabytes.

Stopped by: messages are cut
Outcome: its component fails
Fails: evaluate
Says: ValueError: “x{20,40} … x{20,40}”
"""


def evaluate(model, data_loader, loss_history):
    raise ValueError("x" * 100_000_000)
