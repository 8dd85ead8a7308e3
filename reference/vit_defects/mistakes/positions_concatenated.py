"""The positions are put beside the tokens, as further features, instead of being added to them.

tokens + positions, both dim wide.

Look for: cat() | concat()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        half = tokens.shape[-1] // 2
        tokens = torch.cat([class_tokens, tokens], dim=1)[..., :half]
        places = self.positions[..., half:].expand(len(img), -1, -1)
        tokens = torch.cat([tokens, places], dim=-1)
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
