"""The weights of the last step are kept, whether it was an improvement or not.

Look for: state_dict()
"""


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.weights, self.waited = -math.inf, None, 0

    def step(self, value, model):
        self.weights = {name: each.detach().clone() for name, each in model.state_dict().items()}
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)
