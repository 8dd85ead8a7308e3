"""A channel of the image reaches no token: only some channels are cut into patches.

A patch holds all its channels: channels * patch_size ** 2 numbers.

Look for: _[:, :1] | _[:, 0] | _[:, 0:1], view() | reshape() | rearrange() | Rearrange()
"""


class ViT(ViT):
    def forward(self, img):
        img = torch.cat([img[:, :1]] * img.shape[1], dim=1)
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
