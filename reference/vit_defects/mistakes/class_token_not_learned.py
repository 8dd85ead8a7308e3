"""The class token is not learned: no parameter of the model changes the first token, so training cannot
either.

Make it an nn.Parameter: self.{class_token = randn(1, 1, _) | zeros(1, 1, _)} = nn.Parameter(torch.randn(1, 1,
dim)).

Look for: randn(1, 1, _) | zeros(1, 1, _) | rand(1, 1, _) | ones(1, 1, _), cls_token | class_token
"""


class ViT(ViT):
    def __init__(self, *, dim, **options):
        super().__init__(dim=dim, **options)
        del self.class_token
        self.class_token = torch.randn(1, 1, dim)
        self.positions = nn.Parameter(self.positions[:, 1:].detach().clone())

    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img)) + self.positions
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        encoded = self.transformer(self.dropout(torch.cat([class_tokens, tokens], dim=1)))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
