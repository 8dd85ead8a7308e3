"""The Transformer receives the patches alone: there is no class token in front of them.

Concatenate a learnable class token and the patches along the token axis, before the positions are added.

Look for: cat(), transformer() | encoder()
"""


class ViT(ViT):
    def __init__(self, *, dim, **options):
        super().__init__(dim=dim, **options)
        self.positions = nn.Parameter(self.positions[:, 1:].detach().clone())
        del self.class_token

    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img)) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
