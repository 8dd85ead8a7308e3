"""The best weights by copy.deepcopy, the values in a list, an exhausted patience counted down.
"""


import copy


class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.left = patience
        self.min_delta = min_delta
        self.history = []
        self.best_value = None
        self.best_state = None

    def step(self, value, model):
        value = float(value)
        self.history.append(value)
        improved = not math.isnan(value) and (
            self.best_value is None or value - self.best_value > self.min_delta
        )
        if improved:
            self.best_value, self.left = value, self.patience
            self.best_state = copy.deepcopy(model.state_dict())
            return False
        self.left -= 1
        return self.left <= 0

    def restore(self, model):
        if self.best_state:
            model.load_state_dict(self.best_state)
        return model
