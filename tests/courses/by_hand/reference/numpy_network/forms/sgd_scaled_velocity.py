"""The velocity holds the learning rate: the same steps while it stays."""


class SGD:
    def __init__(self, parameters, learning_rate, momentum=0.0):
        self.parameters, self.learning_rate, self.momentum = parameters, learning_rate, momentum
        self.velocity = [0.0 * p for p in parameters]

    def step(self, gradients):
        for i, (p, g) in enumerate(zip(self.parameters, gradients)):
            self.velocity[i] = self.momentum * self.velocity[i] - self.learning_rate * g
            p += self.velocity[i]
