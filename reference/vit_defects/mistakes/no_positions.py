"""Two equal patches at different places become equal tokens: no position tells them apart.

Add a learnable nn.Parameter of shape (1, patches + 1, dim) to the tokens.

Look for: pos_embedding | positions | pos_embed | pos, cat()
"""


class ViT(ViT):
    def __init__(self, *, dim, **options):
        super().__init__(dim=dim, **options)
        self.positions = nn.Parameter(torch.randn(1, 1, dim))
