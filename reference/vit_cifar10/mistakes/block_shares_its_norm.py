"""Both sub-layers share one norm; each should have its own.

Look for: LayerNorm(), norm2
"""


class EncoderBlock(EncoderBlock):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__(dim, heads, mlp_ratio, dropout)
        self.norm2 = self.norm1
