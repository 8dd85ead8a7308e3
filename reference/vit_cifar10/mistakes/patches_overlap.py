"""The patches overlap: the kernel is larger than its stride.

kernel_size and stride are both the patch size, and nothing is padded.

Look for: Conv2d() | unfold() | Unfold()
"""


class PatchEmbedding(PatchEmbedding):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__(image_size, patch_size, in_channels, dim)
        self.projection = nn.Conv2d(in_channels, dim, 2 * patch_size, patch_size, padding=patch_size // 2)

    def forward(self, images):
        rows = images.shape[-1] // self.projection.stride[0]
        return self.projection(images)[:, :, :rows, :rows].flatten(2).transpose(1, 2)
