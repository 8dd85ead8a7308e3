"""nn.Unfold cuts the patches, nn.Embedding holds the positions, and the head has a hidden layer."""


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
        assert image_size % patch_size == 0, "image size must be divisible by the patch size"
        num_patches = (image_size // patch_size) ** 2
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        self.embed = nn.Linear(channels * patch_size * patch_size, dim, bias=False)
        self.cls = nn.Parameter(torch.rand(dim))
        self.pos = nn.Embedding(num_patches + 1, dim)
        self.drop = nn.Dropout(emb_dropout)
        self.transformer = Transformer(
            dim=dim, depth=depth, heads=heads, dim_head=dim_head, mlp_dim=mlp_dim, dropout=dropout
        )
        self.pool = pool
        self.to_latent = nn.Identity()
        self.mlp_head = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, mlp_dim), nn.Tanh(), nn.Linear(mlp_dim, num_classes)
        )

    def forward(self, img):
        patches = self.embed(self.unfold(img).permute(0, 2, 1))
        b, n, d = patches.shape
        x = torch.cat([self.cls.expand(b, 1, d), patches], dim=1)
        x = self.drop(x + self.pos(torch.arange(n + 1, device=x.device)))
        x = self.transformer(x)
        x = x.mean(dim=1) if self.pool == "mean" else x[:, 0]
        return self.mlp_head(self.to_latent(x))
