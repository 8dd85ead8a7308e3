"""The attention scores are divided by 2 * dim_head: Python reads dim_head ** -1 / 2 as (dim_head ** -1) / 2.
The formula is softmax(q k^T / sqrt(dim_head)) v.

Write dim_head ** -0.5: the exponent makes the square root.

Look for: _ ** -1 / 2 | 1 / (2 * dim_head), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = dim_head**-1 / 2
