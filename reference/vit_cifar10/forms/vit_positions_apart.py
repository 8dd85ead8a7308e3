"""The class token's position is a parameter apart; the norm comes before the mean; no bias in the head."""


class VisionTransformer(nn.Module):
    def __init__(
        self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
        mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls",
    ):
        super().__init__()
        count = (image_size // patch_size) ** 2
        self.pool, self.fixed = pool, positions == "sinusoidal"
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        if self.fixed:
            table = sinusoidal_positions(count + (pool == "cls"), dim)
            self.register_buffer("table", table, persistent=False)
        else:
            self.places = nn.Parameter(torch.empty(1, count, dim).normal_(std=0.02))
            if pool == "cls":
                self.first_place = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        if pool == "cls":
            self.token = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        self.layers = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.ln = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, num_classes, bias=False)
        self.rate = dropout

    def start(self, images):
        x = self.patches(images)
        if not self.fixed:
            x = x + self.places
        if self.pool == "cls":
            token = self.token if self.fixed else self.token + self.first_place
            x = torch.cat((token.expand(x.shape[0], 1, -1), x), dim=1)
        if self.fixed:
            x = x + self.table.unsqueeze(0)
        return F.dropout(x, self.rate, self.training)

    def forward(self, images):
        x = self.start(images)
        for layer in self.layers:
            x = layer(x)
        x = self.ln(x)
        return self.out(x[:, 0] if self.pool == "cls" else torch.mean(x, dim=1))

    def attention(self, images):
        x = self.start(images)
        for layer in self.layers[:-1]:
            x = layer(x)
        return self.layers[-1].attention(self.layers[-1].norm1(x), True)[1]
