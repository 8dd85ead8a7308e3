"""eps is added to the standard deviation, not to the variance.

np.sqrt(variance + eps).

Look for: eps
"""


class BatchNorm(BatchNorm):
    def forward(self, x, training=True):
        eps, self.eps = self.eps, 0.0
        super().forward(x, training)
        self.eps = eps
        grown = self.deviation + eps
        self.normalized *= self.deviation / grown
        self.deviation = grown
        return self.scale * self.normalized + self.shift
