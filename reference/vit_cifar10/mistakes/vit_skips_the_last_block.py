"""The last block is not called.

Look for: blocks[:-1] | blocks[:_]
"""


class VisionTransformer(VisionTransformer):
    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks[: max(1, len(self.blocks) - 1)]:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(dim=1))
