"""The feed-forward part of each block is not mlp_dim wide: Transformer gives it another hidden width.

FeedForward(dim, mlp_dim, dropout).

Look for: FeedForward()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, heads, dim_head, dim, dropout)
