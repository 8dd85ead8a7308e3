"""ViT is a single class with all layers of its blocks written inline; so is the Transformer, which it does
not use."""


def _make_layer(dim, heads, dim_head, mlp_dim):
    return nn.ModuleDict(
        {
            "ln1": nn.LayerNorm(dim),
            "qkv": nn.Linear(dim, 3 * heads * dim_head, bias=False),
            "proj": nn.Linear(heads * dim_head, dim),
            "ln2": nn.LayerNorm(dim),
            "fc1": nn.Linear(dim, mlp_dim),
            "fc2": nn.Linear(mlp_dim, dim),
        }
    )


def _run_layer(L, x, heads, drop):
    q, k, v = rearrange(L["qkv"](L["ln1"](x)), "b n (h d c) -> c b h n d", c=3, h=heads)
    a = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5, -1)
    o = rearrange(torch.einsum("bhij,bhjd->bhid", a, v), "b h n d -> b n (h d)")
    x = x + drop(L["proj"](o))
    return x + drop(L["fc2"](drop(F.gelu(L["fc1"](L["ln2"](x))))))


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(_make_layer(dim, heads, dim_head, mlp_dim) for _ in range(depth))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        for L in self.layers:
            x = _run_layer(L, x, self.heads, self.drop)
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
        self.p, self.heads, self.pool = patch_size, heads, pool
        self.patch = nn.Linear(channels * patch_size**2, dim)
        self.tok = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, dim) * 0.02)
        self.emb_drop, self.drop = nn.Dropout(emb_dropout), nn.Dropout(dropout)
        self.layers = nn.ModuleList(_make_layer(dim, heads, dim_head, mlp_dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patch(rearrange(img, "b c (y p) (x q) -> b (y x) (c p q)", p=self.p, q=self.p))
        x = self.emb_drop(torch.cat([self.tok.expand(x.size(0), -1, -1), x], 1) + self.pos)
        for L in self.layers:
            x = _run_layer(L, x, self.heads, self.drop)
        x = x[:, 0] if self.pool == "cls" else x.mean(1)
        return self.fc(self.norm(x))
