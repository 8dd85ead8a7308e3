"""The attention scores are multiplied by sqrt(dim_head) instead of divided by it, which makes the softmax
pick one token only. The formula is softmax(q k^T / sqrt(dim_head)) v.

Use dim_head ** -0.5: with a minus sign.

Look for: _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = dim_head**0.5
