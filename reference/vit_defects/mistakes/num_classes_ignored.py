"""ViT gives the same number of scores for any num_classes: the argument does not reach the last layer.

nn.Linear(dim, num_classes) as the last layer of the head.

Look for: Linear(dim, 6), Linear(_, 6), Linear(_, 10), Linear(_, 1000), Linear(dim, _)
"""


class ViT(ViT):
    def __init__(self, *, num_classes, **options):
        super().__init__(num_classes=6, **options)
