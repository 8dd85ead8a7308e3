"""The attention scores are divided by dim_head instead of by its square root, as when the scale dim_head **
-0.5 is applied twice. The formula is softmax(q k^T / sqrt(dim_head)) v.

Use dim_head ** -0.5 as the scale, once: scaled_dot_product_attention has it built in, so q
and k go in as they are.

Look for: 1 / dim_head | 1 / head_dim | 1.0 / dim_head | _ ** -1 | _ / dim_head | _ / self.dim_head, scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = 1 / dim_head
