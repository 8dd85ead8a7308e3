"""The positions are a plain tensor of random numbers: they are not learned, and not saved with the weights,
so a model that is loaded again has different ones. What is learned and is not a layer is an nn.Parameter.

self.{positions = torch.randn(1, _ + 1, _) | torch.rand(1, _ + 1, _)} = nn.Parameter(torch.randn(1,
num_patches + 1, dim)).

Look for: positions | pos_embedding | pos_embed | position_embedding, randn() | rand()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**options)
        positions = torch.randn(self.positions.shape)
        del self.positions
        self.positions = positions
