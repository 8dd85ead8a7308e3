"""The gradient of the scale uses the input in the place of the normalized input.

Keep the normalized input in forward.
"""


class BatchNorm(BatchNorm):
    def forward(self, x, training=True):
        self.x = x
        return super().forward(x, training)

    def backward(self, upstream):
        by_input = super().backward(upstream)
        self.scale_gradient = (upstream * self.x).sum(axis=0)
        return by_input
