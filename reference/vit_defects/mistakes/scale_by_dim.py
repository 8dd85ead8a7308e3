"""The attention scores are divided by sqrt(dim), the width of a token, instead of sqrt(dim_head), the width
of one head. It is the number of products in one score that counts: softmax(q k^T / sqrt(dim_head)) v.

Use dim_head ** -0.5 as the scale.

Look for: _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = dim**-0.5
