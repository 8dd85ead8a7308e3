"""The gradient of the bias is a mean over the batch, where it is a sum.

The loss has divided by the batch already.

Look for: mean, bias
"""


class Linear(Linear):
    def backward(self, upstream):
        by_input = super().backward(upstream)
        self.bias_gradient = upstream.mean(axis=0)
        return by_input
