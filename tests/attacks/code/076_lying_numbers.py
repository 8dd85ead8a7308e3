"""Reports numbers whose value changes each time that they are read.

Stopped by: numbers are read once, in the worker
Outcome: its component fails
Fails: evaluate
"""


class Liar(float):
    def __float__(self):
        return 1.0

    def __index__(self):
        return 1

    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0.0

    __rsub__ = __sub__
    __hash__ = float.__hash__


def evaluate(model, data_loader, loss_history):
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            model(images)
    loss_history.extend(Liar() for _ in range(3))
    return Liar(), {"accuracy": Liar()}
