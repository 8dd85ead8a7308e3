"""The tokens are normalized right after the projection; it should be linear.

The norms belong to the blocks.

Look for: norm()
"""


class PatchEmbedding(PatchEmbedding):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__(image_size, patch_size, in_channels, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, images):
        return self.norm(self.projection(images).flatten(2).transpose(1, 2))
