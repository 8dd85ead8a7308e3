"""The running statistics are never updated.

In training, move them toward those of the batch.
"""


class BatchNorm(BatchNorm):
    def forward(self, x, training=True):
        before = self.running_mean.copy(), self.running_variance.copy()
        output = super().forward(x, training)
        self.running_mean[...], self.running_variance[...] = before
        return output
