"""ViT hands heads and dim_head on in the wrong order: the Transformer gets dim_head heads of heads features
each.

The order is Transformer(dim, depth, heads, dim_head, mlp_dim, dropout); or name the arguments.

Look for: Transformer()
"""


class ViT(ViT):
    def __init__(self, *, heads, dim_head=64, **options):
        super().__init__(heads=dim_head, dim_head=heads, **options)
