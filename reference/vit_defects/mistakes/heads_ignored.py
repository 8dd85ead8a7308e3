"""Attention has 4 heads whatever it is asked for: the argument heads is not used.

Use heads in __init__, and keep it as self.heads for forward.

Look for: heads | num_heads | n_heads
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, 4, dim_head, dropout)
