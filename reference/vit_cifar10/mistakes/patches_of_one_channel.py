"""Only the first channel reaches the tokens: color is lost.

Look for: _[:, :1] | _[:, 0] | _[:, 0:1], Conv2d(1, _)
"""


class PatchEmbedding(PatchEmbedding):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__(image_size, patch_size, in_channels, dim)
        self.projection = nn.Conv2d(1, dim, patch_size, patch_size)

    def forward(self, images):
        return self.projection(images[:, :1]).flatten(2).transpose(1, 2)
