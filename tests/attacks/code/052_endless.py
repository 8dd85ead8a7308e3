"""Never returns.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: evaluate
Says: did not return within
"""


def evaluate(model, data_loader, loss_history):
    while True:
        pass
