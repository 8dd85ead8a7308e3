"""A token does not see exactly one patch: pixels of one patch reach several tokens, or pixels of several
patches are mixed in one token. A plain reshape of the image cuts rows, not squares.

Split height and width first: rearrange(img, "b c (h p) (w q) -> b (h w) (p q c)", p=self.patch_size,
q=self.patch_size), with self.patch_size = patch_size in __init__.

Look for: unfold() | Unfold() | rearrange() | Rearrange() | reshape() | view()
"""


class ViT(ViT):
    def __init__(self, *, patch_size, channels=1, **options):
        super().__init__(patch_size=patch_size, channels=channels, **options)
        self.to_patches = Rearrange("b c h w -> b (c h w)")
        self.patch_numbers = channels * patch_size**2

    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img).reshape(len(img), -1, self.patch_numbers))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
