"""With pool='cls' the scores come from all tokens: the pool argument is ignored, and the mean is taken in
either case.

Take x[:, 0] after the Transformer when pool is 'cls'.

Look for: mean(), pool
"""


class ViT(ViT):
    def __init__(self, *, pool="cls", **options):
        super().__init__(pool="mean", **options)
