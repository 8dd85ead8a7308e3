"""Fills a dictionary with keys that collide.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: evaluate
Says: did not return within
"""


def evaluate(model, data_loader, loss_history):
    class Key:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return False

    {Key(): number for number in range(1_000_000)}
