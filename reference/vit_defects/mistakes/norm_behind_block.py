"""Each block is normalized once, after its second sum, and not before its parts. Each part should see
normalized tokens: x = x + part(norm(x)).

Two normalizations per block, one before each part: that is what PreNorm does.

Look for: LayerNorm(), norm()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 0, heads, dim_head, mlp_dim, dropout)
        for _ in range(depth):
            first = Attention(dim, heads, dim_head, dropout)
            second = FeedForward(dim, mlp_dim, dropout)
            self.blocks.append(nn.ModuleList([first, second, nn.LayerNorm(dim)]))

    def forward(self, x):
        for attention, feed_forward, norm1 in self.blocks:
            x = x + attention(x)
            x = norm1(x + feed_forward(x))
        return x
