"""The attention does not get the number of heads that the block was given.

Look for: MultiHeadSelfAttention()
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, 2, mlp_ratio, dropout)
