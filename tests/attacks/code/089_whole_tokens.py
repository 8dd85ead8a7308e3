"""Hands tokens of whole numbers on, which compare as equal.

Stopped by: what fakes receive must be floating point
Outcome: its component fails
Fails: ViT
Says: int64
Runs: ViT PreNorm
"""


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
        self.dim, self.count = dim, (image_size // patch_size) ** 2
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        tokens = torch.zeros(len(img), self.count + 1, self.dim, dtype=torch.int64)
        return self.head(self.transformer(tokens).float()[:, 0])
