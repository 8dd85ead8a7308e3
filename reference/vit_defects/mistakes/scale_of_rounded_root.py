"""The attention scores are divided by the square root of dim_head without its decimals: by 2 for a dim_head
of 7. The formula is softmax(q k^T / sqrt(dim_head)) v, with the root as it is.

Use dim_head ** -0.5 as the scale, without int() or //.

Look for: int() | isqrt() | floor(), _ ** 0.5 | sqrt(), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = 1 / int(dim_head**0.5)
