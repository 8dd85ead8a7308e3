"""The model asks its patches how many there are, and its blocks for their weights; the map asks the model."""


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super(PatchEmbedding, self).__init__()
        self.side = image_size // patch_size
        self.count = self.side**2
        self.projection = nn.Conv2d(in_channels, dim, patch_size, stride=patch_size)

    def forward(self, images):
        return self.projection(images).flatten(2).transpose(1, 2)


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super(EncoderBlock, self).__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(nn.Linear(dim, int(dim * mlp_ratio)), nn.GELU(), nn.Linear(int(dim * mlp_ratio), dim))

    def forward(self, x, with_weights=False):
        y, weights = self.attention(self.norm1(x), return_weights=True)
        x = x + y
        x = x + self.mlp(self.norm2(x))
        return (x, weights) if with_weights else x


class VisionTransformer(nn.Module):
    def __init__(
        self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
        mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls",
    ):
        super(VisionTransformer, self).__init__()
        self.pool = pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        tokens = self.patches.count
        if pool == "cls":
            tokens += 1
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        if positions == "learned":
            self.positions = nn.Parameter(0.02 * torch.randn(1, tokens, dim))
        else:
            self.positions = nn.Parameter(sinusoidal_positions(tokens, dim)[None], requires_grad=False)
        self.early = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth - 1)])
        self.last = EncoderBlock(dim, heads, mlp_ratio, dropout)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def seen(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.positions
        for block in self.early:
            x = block(x)
        return self.last(x, with_weights=True)

    def forward(self, images):
        x = self.norm(self.seen(images)[0])
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(dim=1))

    def attention(self, images):
        return self.seen(images)[1]


# >>> ONLY full
def attention_map(model, image):
    before = model.training
    model.eval()
    with torch.no_grad():
        weights = model.attention(image[None].to(next(model.parameters()).device))[0].mean(0).cpu()
    model.train(before)
    row = weights[0, 1:] if model.pool == "cls" else weights.mean(0)
    heat = (row / row.max()).view(model.patches.side, model.patches.side)
    size = image.shape[1] // model.patches.side
    return heat.repeat_interleave(size, 0).repeat_interleave(size, 1)
# <<< ONLY
