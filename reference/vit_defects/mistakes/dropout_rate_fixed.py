"""In training FeedForward drops values at another rate than its argument dropout asks for; with dropout=0
nothing should be dropped.

Write nn.Dropout(dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim, 0.3)
