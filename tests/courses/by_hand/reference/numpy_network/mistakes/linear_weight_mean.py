"""The gradient of the weights is divided by the batch size, which the loss has done already.

Leave the division to the loss.

Look for: len, shape, weight
"""


class Linear(Linear):
    def backward(self, upstream):
        by_input = super().backward(upstream)
        self.weight_gradient = self.weight_gradient / len(upstream)
        return by_input
