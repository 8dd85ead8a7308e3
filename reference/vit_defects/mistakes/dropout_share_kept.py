"""The larger the argument dropout, the less FeedForward drops in training: as if it were the share of values
to keep. It is the share to drop.

Write nn.Dropout(dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim, 1 - dropout)
