"""The number of channels is fixed in the code: images with another number of channels cannot be handled. A
patch has channels * patch_size ** 2 numbers.

nn.Linear(channels * patch_size**2, dim), or nn.Conv2d(channels, dim, patch_size, patch_size).

Look for: Linear(patch_size**2) | Conv2d(1), Linear() | Conv2d(), Rearrange() | rearrange()
"""


class ViT(ViT):
    def __init__(self, *, patch_size, channels=1, **options):
        super().__init__(patch_size=patch_size, channels=channels, **options)
        self.patch_projection = nn.Linear(patch_size**2, self.class_token.shape[-1])
