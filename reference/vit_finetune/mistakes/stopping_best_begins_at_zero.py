"""The best value begins at 0: a first value of 0 is no improvement, and its weights are not kept.

Begin with -math.inf, or with None: the first value that is a number is an improvement, whatever it is.

Look for: best
"""


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.weights, self.waited = 0.0, None, 0

    def step(self, value, model):
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
            self.weights = {name: each.detach().clone() for name, each in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)
