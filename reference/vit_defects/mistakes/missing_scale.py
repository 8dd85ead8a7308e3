"""The attention scores are not divided by sqrt(dim_head). Scores are sums of dim_head products, so they grow
with dim_head, the softmax saturates, and little gradient comes through; the formula is softmax(q k^T /
sqrt(dim_head)) v.

Multiply the scores by dim_head ** -0.5 before the softmax.

Look for: _ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()) | bmm(_, _.transpose()), softmax()
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.scale = 1.0
