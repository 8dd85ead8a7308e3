"""Every place in the image has a projection of its own. One linear layer (or one convolution) projects all
patches, so that what is learned about a texture at one place holds at all places; the position is what
tells places apart.

Apply the same nn.Linear to (batch, patches, channels * patch_size ** 2).

Look for: ModuleList(), Linear() | Conv2d(), einsum()
"""


class ViT(ViT):
    def __init__(self, *, image_size, patch_size, channels=1, **options):
        super().__init__(image_size=image_size, patch_size=patch_size, channels=channels, **options)
        numbers, width = channels * patch_size**2, self.class_token.shape[-1]
        self.own = nn.ModuleList(nn.Linear(numbers, width) for _ in range((image_size // patch_size) ** 2))
        del self.patch_projection

    def forward(self, img):
        patches = self.to_patches(img)
        tokens = torch.stack([own(patches[:, number]) for number, own in enumerate(self.own)], dim=1)
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
