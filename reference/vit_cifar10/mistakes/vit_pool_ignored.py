"""pool has no effect: the first token is classified either way.

Look for: _[:, 0]
"""


class VisionTransformer(VisionTransformer):
    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
