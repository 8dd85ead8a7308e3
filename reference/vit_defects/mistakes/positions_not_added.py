"""The positions are made in __init__, and forward never adds them to the tokens: two equal patches at
different places become equal tokens.

Add them in forward, once the class token stands in front: tokens + self.{positions = Parameter(torch.randn(1,
_ + 1, _)) | Parameter(torch.zeros(1, _ + 1, _))}.

Look for: cat() | concat(), transformer()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        encoded = self.transformer(self.dropout(torch.cat([class_tokens, tokens], dim=1)))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
