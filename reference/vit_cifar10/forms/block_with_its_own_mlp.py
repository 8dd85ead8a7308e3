"""The MLP as a class of its own, with GELU by the tangent, and dropout around both sub-layers."""


class Mlp(nn.Module):
    def __init__(self, dim, hidden, dropout):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.fc2(self.dropout(F.gelu(self.fc1(x), approximate="tanh"))))


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout=dropout)
        self.drop = nn.Dropout(dropout)
        self.mlp = Mlp(dim, int(mlp_ratio * dim), dropout)

    def forward(self, x):
        normed = self.norm1(x)
        x = x + self.drop(self.attention(normed))
        normed = self.norm2(x)
        return x + self.mlp(normed)
