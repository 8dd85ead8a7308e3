"""The bias gets no gradient, so that Linear never learns one.

Add up the upstream gradient over the batch.

Look for: bias, gradients
"""


class Linear(Linear):
    def backward(self, upstream):
        by_input = super().backward(upstream)
        self.bias_gradient = np.zeros_like(self.bias)
        return by_input
