"""The MLP drops at a rate of its own, whatever dropout is.

Use the argument: nn.Dropout(dropout).

Look for: Dropout()
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, heads, mlp_ratio, dropout)
        self.mlp[2], self.mlp[4] = nn.Dropout(0.5), nn.Dropout(0.5)
