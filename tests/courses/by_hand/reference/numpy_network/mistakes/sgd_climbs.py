"""The gradient is added: the loss grows.

Subtract it.
"""


class SGD(SGD):
    def step(self, gradients):
        super().step([-gradient for gradient in gradients])
