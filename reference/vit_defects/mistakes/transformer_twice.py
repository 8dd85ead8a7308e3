"""The Transformer is applied more than once: the same blocks, with the same weights, run again.

Call it once.

Look for: transformer() | encoder()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.transformer(self.dropout(tokens)))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
