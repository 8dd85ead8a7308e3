"""With heads * dim_head equal to dim, the output projection is left out although there are several heads:
nothing then mixes what the heads found. Only a single head of width dim may do without it.

The usual condition is: no projection if heads == 1 and dim_head == dim.

Look for: Identity(), return
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        if heads * dim_head == dim:
            self.to_out = nn.Dropout(dropout)
