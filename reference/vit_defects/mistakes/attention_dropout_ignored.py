"""The dropout argument of Attention is not used: nothing is dropped in training.

Put nn.Dropout(dropout) after the output projection.

Look for: dropout
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head)
