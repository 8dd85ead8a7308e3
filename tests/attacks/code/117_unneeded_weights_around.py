"""Adds weights that nothing needs to a wrong encoder and a wrong model, so that they cannot be compared.

Stopped by: a spare weight is left out of the comparison, or held where it does least
Outcome: its component fails
Fails: Transformer ViT
Runs: Transformer ViT PreNorm
"""


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.spare = nn.Parameter(torch.randn(3, 3))
        self.more = nn.Linear(dim, dim)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.blocks.append(nn.ModuleList([attention, feed_forward]))

    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = attention(x)
            x = x + feed_forward(x)
        return x


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
        self.spare = nn.Parameter(torch.zeros(1, 1, dim))
        self.more = nn.Linear(dim, 2 * dim)
        self.to_patches = Rearrange("b c (p h) (q w) -> b (h w) (p q c)", p=patch_size, q=patch_size)
        self.patch_projection = nn.Linear(channels * patch_size**2, dim)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size) ** 2, dim))
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img)) + self.positions
        return self.head(self.transformer(tokens).max(dim=1).values).softmax(dim=-1)
