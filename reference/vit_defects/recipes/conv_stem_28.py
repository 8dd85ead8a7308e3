"""Still 28 x 28 images, but three small convolutions in place of the linear patch projection.

Overlapping convolutions see edges wherever they lie, where a linear projection has to learn them anew for
every place within a patch. Everything else is as in the recipe with the linear projection, but for depth and
epochs.

Based on: linear_28
Policy: convolutional_stem
"""

EMBEDDING_NORM = nn.BatchNorm2d  # without batch normalization in the stem: nn.Identity


def divisors(number):
    """The prime factors of a number, in order: 12 is 2, 2, 3."""
    for divisor in range(2, number + 1):
        if number % divisor == 0:
            return [divisor, *divisors(number // divisor)]
    return []


class Embedding(nn.Module):
    """Images to tokens by small convolutions, one token for each patch.

    There are at least three. Each makes the image smaller by a prime factor of the patch size, those in front
    by nothing where there are fewer factors: for patches of 4 by 1, 2 and 2.

    Args:
        channels: How many channels the image has.
        patch_size: What height and width are divided by.
        dim: The width of a token.

    forward:
        img: Images, (batch, channels, height, width).
        Returns tokens, (batch, height / patch_size * width / patch_size, dim).
    """

    def __init__(self, channels, patch_size, dim):
        super().__init__()
        strides = divisors(patch_size)
        strides = [1] * (3 - len(strides)) + strides
        widths = [min(dim, max(1, dim // 4) * 2**index) for index in range(len(strides))]
        layers = []
        for stride, before, width in zip(strides, [channels, *widths], widths, strict=False):
            kernel = max(3, stride)
            padding = 0 if stride > 2 else 1
            layers += [
                nn.Conv2d(before, width, kernel, stride, padding, bias=EMBEDDING_NORM is nn.Identity),
                EMBEDDING_NORM(width),
                nn.ReLU(),
            ]
        self.convolutions = nn.Sequential(*layers)
        self.projection = nn.Conv2d(widths[-1], dim, kernel_size=1)

    def forward(self, img):
        return rearrange(self.projection(self.convolutions(img)), "b d h w -> b (h w) d")


DEPTH = 4
N_EPOCHS = 100
