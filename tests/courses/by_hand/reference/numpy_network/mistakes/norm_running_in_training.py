"""In training, the running statistics are used in the place of the batch's.

Normalize by the batch's own mean and variance.
"""


class BatchNorm(BatchNorm):
    def forward(self, x, training=True):
        super().forward(x, training)
        return super().forward(x, training=False)
