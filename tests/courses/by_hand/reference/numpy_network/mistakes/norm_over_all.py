"""Mean and variance are taken over all features together.

Take them over the batch alone: axis=0.

Look for: axis, mean, var
"""


class BatchNorm(BatchNorm):
    def forward(self, x, training=True):
        if not training:
            return super().forward(x, training)
        mean, variance = x.mean(), x.var()
        self.running_mean[...] = (1 - self.momentum) * self.running_mean + self.momentum * mean
        self.running_variance[...] = (1 - self.momentum) * self.running_variance + self.momentum * variance
        self.deviation = np.sqrt(variance + self.eps)
        self.normalized = (x - mean) / self.deviation
        return self.scale * self.normalized + self.shift
