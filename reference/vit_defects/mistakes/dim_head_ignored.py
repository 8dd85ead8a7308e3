"""The heads have dim // heads features each: the argument dim_head is not used.

The projections to q, k and v have heads * dim_head features; dim need not equal that.

Look for: _ // heads | _ // num_heads | _ // self.heads | _ // self.num_heads
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim // heads, dropout)
