"""The larger the argument dropout, the less Attention drops in training: as if it were the share of values to
keep. It is the share to drop.

Write nn.Dropout(dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, 1 - dropout)
