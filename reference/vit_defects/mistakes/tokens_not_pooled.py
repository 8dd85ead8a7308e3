"""Every token is classified: there are scores for each token of an image, and no single answer. The scores
are those of the class token with pool='cls', and of the mean of all tokens with pool='mean'.

x[:, 0] if self.pool == "cls" else x.mean(dim=1), before the head.

Look for: return
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        return self.head(self.transformer(self.dropout(tokens)))
