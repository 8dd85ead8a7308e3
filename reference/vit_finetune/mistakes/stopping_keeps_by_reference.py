"""The tensors of the best weights are kept, not copies of them: they go on changing with the model, so the
last ones are restored. state_dict().copy() copies the dictionary alone.

Clone each tensor, or copy.deepcopy(model.state_dict()).

Look for: state_dict()
"""


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.weights, self.waited = -math.inf, None, 0

    def step(self, value, model):
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
            self.weights = model.state_dict()
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        if self.weights is not None:
            model.load_state_dict(self.weights)
