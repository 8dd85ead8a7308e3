"""The weights are dropped at a rate of its own, whatever dropout is.

Use the argument: nn.Dropout(dropout).

Look for: Dropout()
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__(dim, heads, dropout)
        self.dropout = nn.Dropout(0.1)
