"""The gradient of the weights uses the first batch that came through, not the last one.

Keep x in each forward.
"""


class Linear(Linear):
    def forward(self, x, training=True):
        kept = getattr(self, "first", None)
        output = super().forward(x, training)
        if training and kept is None:
            self.first = x
        if training:
            self.x = self.first
        return output
