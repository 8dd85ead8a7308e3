"""The velocities are kept by number, made when they are needed."""


class SGD:
    def __init__(self, parameters, learning_rate, momentum=0.0):
        self.params, self.lr, self.mu, self.v = list(parameters), learning_rate, momentum, {}

    def step(self, gradients):
        for i in range(len(self.params)):
            self.v[i] = self.mu * self.v.get(i, 0.0) + gradients[i]
            self.params[i][:] = self.params[i] - self.lr * self.v[i]
