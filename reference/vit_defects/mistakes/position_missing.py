"""A token gets no position: there are fewer positions than tokens.

num_patches + 1 positions, one for the class token and one for every patch.

Look for: positions, pos, pos_embedding, pos_embed
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1)
        tokens[:, :-1] += self.positions[:, 1:]
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
