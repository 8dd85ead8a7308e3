"""Fixed positions as a parameter without gradient, the class token initialized with zeros, head with a
norm."""


class VisionTransformer(nn.Module):
    def __init__(
        self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
        mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls",
    ):
        super().__init__()
        count = (image_size // patch_size) ** 2
        self.embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.cls = nn.Parameter(torch.zeros(dim)) if pool == "cls" else None
        count += self.cls is not None
        learned = positions == "learned"
        start = torch.randn(count, dim) * 0.02 if learned else sinusoidal_positions(count, dim)
        self.place = nn.Parameter(start, requires_grad=learned)
        self.encoder = nn.Sequential(*[EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.classifier = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))
        self.drop = nn.Dropout(dropout)

    def embed(self, images):
        x = self.embedding(images)
        if self.cls is not None:
            x = torch.cat([self.cls.repeat(len(x), 1, 1), x], dim=1)
        return self.drop(x + self.place)

    def forward(self, images):
        x = self.encoder(self.embed(images))
        return self.classifier(x[:, 0] if self.cls is not None else x.mean(1))

    def attention(self, images):
        x = self.encoder[:-1](self.embed(images))
        return self.encoder[-1].attention(self.encoder[-1].norm1(x), return_weights=True)[1]
