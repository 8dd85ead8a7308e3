"""The block hands its attention's weights on when it is asked to; ReLU in the MLP."""


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim=dim, heads=heads, dropout=dropout)
        width = round(dim * mlp_ratio)
        self.up, self.down = nn.Linear(dim, width), nn.Linear(width, dim)

    def forward(self, x, return_weights=False):
        if return_weights:
            y, weights = self.attention(self.norm1(x), return_weights=True)
        else:
            y = self.attention(self.norm1(x))
        x = x + y
        x = x + self.down(F.relu(self.up(self.norm2(x))))
        return (x, weights) if return_weights else x
