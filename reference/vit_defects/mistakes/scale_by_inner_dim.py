"""The attention scores are divided by sqrt(heads * dim_head), the width of all heads together, instead of
sqrt(dim_head), the width of one. Every head computes softmax(q k^T / sqrt(dim_head)) v by itself.

Use dim_head ** -0.5 as the scale.

Look for: _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = (heads * dim_head) ** -0.5
