"""The Transformer is one block and a Transformer of depth - 1."""


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
        self.rest = (
            Transformer(dim, depth - 1, heads, dim_head, mlp_dim, dropout) if depth > 1 else nn.Identity()
        )

    def forward(self, x):
        x = x + self.attention(x)
        x = x + self.mlp(x)
        return self.rest(x)
