"""The gradient by the input takes mean and variance for constants.

They depend on every example of the batch: two more terms follow.
"""


class BatchNorm(BatchNorm):
    def backward(self, upstream):
        super().backward(upstream)
        return upstream * self.scale / self.deviation
