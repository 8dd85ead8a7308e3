"""mlp_ratio has no effect: the MLP's hidden width should be mlp_ratio times dim.

Look for: Linear(dim, _)
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, heads, 2.0, dropout)
