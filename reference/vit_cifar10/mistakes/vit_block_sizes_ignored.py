"""heads and mlp_ratio do not reach the blocks.

Look for: EncoderBlock()
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, heads=8, mlp_ratio=4.0, **kwargs):
        super().__init__(*args, heads=heads, mlp_ratio=mlp_ratio, **kwargs)
        dim = self.head.in_features
        self.blocks = nn.ModuleList([EncoderBlock(dim, 2) for _ in self.blocks])
