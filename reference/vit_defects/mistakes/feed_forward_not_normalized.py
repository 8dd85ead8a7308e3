"""The feed-forward part sees tokens that are not normalized; only the attention has a normalization before
it.

Wrap it too: PreNorm(dim, FeedForward(...)).

Look for: FeedForward()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 0, heads, dim_head, mlp_dim, dropout)
        for _ in range(depth):
            first = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
            second = FeedForward(dim, mlp_dim, dropout)
            self.blocks.append(nn.ModuleList([first, second]))

    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x
