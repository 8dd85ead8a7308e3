"""The last block's weights are caught by a hook on what its attention is given."""


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        tokens = (image_size // patch_size) ** 2 + (pool == "cls")
        self.pool = pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        if pool == "cls":
            self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        if positions == "sinusoidal":
            self.register_buffer("positions", sinusoidal_positions(tokens, dim)[None])
        else:
            self.positions = nn.Parameter(0.02 * torch.randn(1, tokens, dim))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def tokens(self, images):
        """What goes into the first block, (batch, tokens, dim)."""
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x + self.positions)

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0] if self.pool == "cls" else x.mean(dim=1))

    def attention(self, images):
        caught = []
        layer = self.blocks[-1].attention
        handle = layer.register_forward_pre_hook(lambda module, given: caught.append(given[0]))
        try:
            self(images)
        finally:
            handle.remove()
        return layer(caught[0], return_weights=True)[1]
