"""Transformer hands heads and dim_head on in the wrong order: its Attention gets dim_head heads of heads
features each.

The order is Attention(dim, heads, dim_head, dropout); or name the arguments.

Look for: Attention()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, dim_head, heads, mlp_dim, dropout)
