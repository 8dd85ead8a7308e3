"""The images of a batch are mixed: what one image's tokens are depends on the other images.

Keep the batch axis in front in every reshape and concatenation.

Look for: view() | reshape() | rearrange(), cat()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = tokens + tokens.flip(0)
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
