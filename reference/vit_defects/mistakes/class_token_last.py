"""The class token comes after the patches; its place is in front of them, where pool='cls' reads it.

Name it first in torch.cat: torch.cat((class_tokens, patches), dim=1).

Look for: cat() | concat()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        encoded = self.transformer(self.dropout(torch.cat([tokens, class_tokens], dim=1) + self.positions))
        return self.head(encoded[:, -1] if self.pool == "cls" else encoded.mean(dim=1))
