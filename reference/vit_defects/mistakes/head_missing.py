"""ViT returns dim numbers for each image in place of num_classes: the last linear layer, from dim to
num_classes, is missing.

self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes)).

Look for: mlp_head | head | classifier | fc | out, LayerNorm(), return
"""


class ViT(ViT):
    def __init__(self, *, dim, **options):
        super().__init__(dim=dim, **options)
        self.head = nn.LayerNorm(dim)
