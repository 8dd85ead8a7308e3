"""ViT does not hand its argument dropout on to the Transformer, which drops nothing in training.

Transformer(dim, depth, heads, dim_head, mlp_dim, dropout).

Look for: Transformer()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "dropout": 0.0})
