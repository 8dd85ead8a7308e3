"""Sinusoidal positions in a buffer, patches cut by slices in a loop, type hints.

Policy: fixed_positions
"""

import math


def sinusoids(count: int, dim: int) -> torch.Tensor:
    places = torch.arange(count).unsqueeze(1).float()
    rates = torch.exp(torch.arange(0, dim, 2).float() * -(math.log(10000.0) / dim))
    table = torch.zeros(1, count, dim)
    table[0, :, 0::2] = torch.sin(places * rates)
    table[0, :, 1::2] = torch.cos(places * rates[: dim // 2])
    return table


class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        num_classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        pool: str = "cls",
        channels: int = 1,
        dim_head: int = 64,
        dropout: float = 0.0,
        emb_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(channels * patch_size * patch_size, dim)
        self.class_embedding = nn.Parameter(torch.randn(1, dim))
        self.register_buffer("positions", sinusoids((image_size // patch_size) ** 2 + 1, dim))
        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.emb_dropout = nn.Dropout(emb_dropout)
        self.pooling = pool
        self.ln = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, num_classes)

    def forward(self, img: torch.Tensor) -> torch.Tensor:
        p, tokens = self.patch_size, [self.class_embedding.expand(img.shape[0], -1)]
        for top in range(0, img.shape[2], p):
            for left in range(0, img.shape[3], p):
                tokens.append(self.projection(img[:, :, top : top + p, left : left + p].flatten(1)))
        x = self.encoder(self.emb_dropout(torch.stack(tokens, dim=1) + self.positions))
        x = self.ln(x)
        pooled = x[:, 0] if self.pooling == "cls" else x.mean(dim=1)
        return self.fc(pooled)
