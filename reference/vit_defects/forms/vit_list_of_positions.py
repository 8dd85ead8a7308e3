"""Patches are cut in Python loops, and the positions are a list of parameters."""


class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        self.image_size = image_size
        self.patch_size = patch_size
        count = (image_size // patch_size) ** 2
        self.patch_linear = nn.Linear(channels * patch_size * patch_size, dim)
        self.cls_token = nn.Parameter(torch.rand(dim))
        self.positions = nn.ParameterList([nn.Parameter(torch.randn(dim) * 0.1) for _ in range(count + 1)])
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.pool = pool
        self.final_norm = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def forward(self, img):
        p = self.patch_size
        tokens = [self.cls_token.expand(img.shape[0], -1)]
        for top in range(0, self.image_size, p):
            for left in range(0, self.image_size, p):
                patch = img[:, :, top : top + p, left : left + p]
                tokens.append(self.patch_linear(patch.flatten(1)))
        tokens = [t + pos for t, pos in zip(tokens, self.positions)]
        x = torch.stack(tokens, dim=1)
        x = self.transformer(self.dropout(x))
        if self.pool == "cls":
            x = x[:, 0]
        elif self.pool == "mean":
            x = torch.mean(x, 1)
        else:
            raise ValueError(self.pool)
        return self.classifier(self.final_norm(x))
