"""The normalization comes after each part, x = x + norm(part(x)), instead of before it: x = x +
part(norm(x)).

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
            x = x + norm1(attention(x))
            x = x + norm2(feed_forward(x))
        return x
