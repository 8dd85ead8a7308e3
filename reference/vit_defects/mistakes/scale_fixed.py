"""The scores are multiplied by the same number whatever dim_head is. They grow with dim_head, the length of
the sums in q k^T, so the scale has to follow it: softmax(q k^T / sqrt(dim_head)) v.

Use dim_head ** -0.5 as the scale.

Look for: _ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()), scale
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = 0.125
