"""Two equal patches at different places become equal tokens: no position tells them apart.

Make an nn.Parameter of shape (1, patches + 1, dim) in __init__, and add it to the tokens in forward.

Look for: cat() | concat()
"""


class ViT(ViT):
    def __init__(self, *, dim, **options):
        super().__init__(dim=dim, **options)
        self.positions = nn.Parameter(torch.randn(1, 1, dim))
