"""A new backward adds to the gradients of the one before.

Assign the gradients instead of adding to them.
"""


class Linear(Linear):
    def backward(self, upstream):
        before = getattr(self, "weight_gradient", 0.0), getattr(self, "bias_gradient", 0.0)
        by_input = super().backward(upstream)
        self.weight_gradient = self.weight_gradient + before[0]
        self.bias_gradient = self.bias_gradient + before[1]
        return by_input
