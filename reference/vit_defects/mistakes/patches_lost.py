"""A part of the image reaches no token: the patches do not cover the whole image.

There should be (image_size / patch_size) ** 2 patches side by side, in steps of patch_size.

Look for: unfold() | Unfold() | Conv2d() | rearrange() | Rearrange(), range()
"""


class ViT(ViT):
    def forward(self, img):
        img = torch.cat([img[:, :, : img.shape[2] // 3]] * 3, dim=2)
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
