"""ViT constructs its Transformer with a different number from the one that it was given: a size is
hard-coded, or is in another's place.

Hand depth, heads, dim_head, mlp_dim and dropout on as they were given.

Look for: Transformer()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "depth": 1})
