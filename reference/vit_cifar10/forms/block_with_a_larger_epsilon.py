"""A block whose norms have an epsilon of 1e-3, and that keeps its weights by another call of its attention."""


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-3), nn.LayerNorm(dim, eps=1e-3)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        hidden, self.seen = int(dim * mlp_ratio), None
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        normed = self.norm1(x)
        if not self.training:
            self.seen = self.attention(normed, return_weights=True)[1].detach()
        x = x + self.attention(normed)
        return x + self.drop(self.mlp(self.norm2(x)))
