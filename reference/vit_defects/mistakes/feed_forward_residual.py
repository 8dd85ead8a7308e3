"""FeedForward adds its input to its output: the residual connection belongs to Transformer, and would be
added twice.

Return the layers' output only.

Look for: return
"""


class FeedForward(FeedForward):
    def forward(self, x):
        return self.net(x) + x
