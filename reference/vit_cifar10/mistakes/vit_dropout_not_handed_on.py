"""dropout does not reach the blocks.

Look for: EncoderBlock()
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, dropout=0.1, heads=8, mlp_ratio=4.0, **kwargs):
        super().__init__(*args, dropout=dropout, heads=heads, mlp_ratio=mlp_ratio, **kwargs)
        dim = self.head.in_features
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio) for _ in self.blocks])
