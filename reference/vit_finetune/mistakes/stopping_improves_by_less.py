"""min_delta makes improving easier: it is subtracted from the best so far; it should be added to it.

Look for: value > _ | value >= _ | _ < value
"""


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.weights, self.waited = -math.inf, None, 0

    def step(self, value, model):
        if value > self.best - self.min_delta:
            self.best, self.waited = value, 0
            self.weights = {name: each.detach().clone() for name, each in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)
