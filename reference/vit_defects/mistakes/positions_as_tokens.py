"""The positions are put behind the tokens, as further tokens, instead of being added to them.

tokens + positions: as many as before, each dim wide.

Look for: cat() | concat()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        positions = self.positions.expand(len(img), -1, -1)
        tokens = torch.cat([class_tokens, tokens, positions], dim=1)
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
