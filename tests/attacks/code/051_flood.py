"""Prints without end.

Stopped by: the cap on output
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “printed”
"""


def evaluate(model, data_loader, loss_history):
    import os

    for _ in range(300):
        os.write(1, b"x" * 100_000)
        os.write(2, b"x" * 100_000)
    print("x" * 10_000_000)
    raise ValueError("printed")
