"""Transformer does not hand its argument dropout on to both of its parts, Attention and FeedForward: where it
is missing, nothing is dropped in training.

Attention(dim, heads, dim_head, dropout) and FeedForward(dim, mlp_dim, dropout).

Look for: Attention()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, heads, dim_head, mlp_dim)
