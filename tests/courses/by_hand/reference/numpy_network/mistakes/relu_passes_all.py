"""The gradient goes through where the input was negative, too.

Multiply by whether the input was above 0.
"""


class ReLU(ReLU):
    def backward(self, upstream):
        return upstream
