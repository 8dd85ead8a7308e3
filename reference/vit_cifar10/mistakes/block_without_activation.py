"""There is no activation between the MLP's two linear layers, so together they are just one.

Look for: Sequential()
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, heads, mlp_ratio, dropout)
        self.mlp = nn.Sequential(nn.Linear(dim, int(dim * mlp_ratio)), nn.Linear(int(dim * mlp_ratio), dim))
