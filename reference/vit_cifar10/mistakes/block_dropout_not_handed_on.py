"""dropout does not reach the attention.

Look for: MultiHeadSelfAttention()
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, heads, mlp_ratio, dropout)
        self.attention = MultiHeadSelfAttention(dim, heads)
