"""ViT builds its blocks from PreNorm, Attention and FeedForward itself, without the class Transformer."""


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
        self.patch_size = patch_size
        n_patches = (image_size // patch_size) ** 2
        self.patch_to_emb = nn.Linear(channels * patch_size**2, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n_patches + 1, dim))
        self.drop = nn.Dropout(emb_dropout)
        self.attn = nn.ModuleList()
        self.ff = nn.ModuleList()
        for _ in range(depth):
            self.attn.append(PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)))
            self.ff.append(PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)))
        self.pool = pool
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        b = img.shape[0]
        x = rearrange(img, "b c (h p1) (w p2) -> b (h w) (p2 p1 c)", p1=self.patch_size, p2=self.patch_size)
        x = self.patch_to_emb(x)
        x = torch.cat([self.cls.expand(b, -1, -1), x], dim=1)
        x = self.drop(x + self.pos)
        for attn, ff in zip(self.attn, self.ff):
            x = x + attn(x)
            x = x + ff(x)
        if self.pool == "cls":
            x = torch.index_select(x, 1, torch.tensor([0], device=x.device)).squeeze(1)
        else:
            x = x.mean(1)
        return self.head(x)
