"""The gradient is multiplied by 1 - momentum, which is another rule.

v = momentum * v + gradient.
"""


class SGD(SGD):
    def step(self, gradients):
        super().step([(1 - self.momentum) * gradient for gradient in gradients])
