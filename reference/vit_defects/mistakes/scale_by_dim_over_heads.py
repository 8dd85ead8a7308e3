"""The attention scores are divided by sqrt(dim // heads), which is not the width of a head here: that is the
argument dim_head. The formula is softmax(q k^T / sqrt(dim_head)) v.

Use dim_head ** -0.5 as the scale.

Look for: _ // heads | _ // num_heads | _ // self.heads | _ // self.num_heads | _ / heads, scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = (dim // heads) ** -0.5
