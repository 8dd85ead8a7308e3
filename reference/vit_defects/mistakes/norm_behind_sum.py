"""The normalization comes after each residual sum, x = norm(x + part(x)), as in the first Transformer. Here
it belongs before each part, x = x + part(norm(x)): the input then passes through the whole network unchanged.

Normalize the input of each part: that is what PreNorm does.

Look for: _ + _, loop
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 0, heads, dim_head, mlp_dim, dropout)
        for _ in range(depth):
            first = Attention(dim, heads, dim_head, dropout)
            second = FeedForward(dim, mlp_dim, dropout)
            self.blocks.append(nn.ModuleList([first, second, nn.LayerNorm(dim), nn.LayerNorm(dim)]))

    def forward(self, x):
        for attention, feed_forward, norm1, norm2 in self.blocks:
            x = norm1(x + attention(x))
            x = norm2(x + feed_forward(x))
        return x
