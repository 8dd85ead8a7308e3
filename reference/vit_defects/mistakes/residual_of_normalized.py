"""The residual connection adds to the normalized tokens: norm(x) + part(norm(x)) instead of x +
part(norm(x)). The path around the part should carry x unchanged.

Add the part's result to what went into PreNorm.
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 0, heads, dim_head, mlp_dim, dropout)
        for _ in range(depth):
            attention = Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)
            feed_forward = FeedForward(dim, mlp_dim, dropout=dropout)
            norms = [PreNorm(dim, nn.Identity()), PreNorm(dim, nn.Identity())]
            self.blocks.append(nn.ModuleList([norms[0], attention, norms[1], feed_forward]))

    def forward(self, x):
        for attention_norm, attention, feed_forward_norm, feed_forward in self.blocks:
            x = attention_norm(x)
            x = x + attention(x)
            x = feed_forward_norm(x)
            x = x + feed_forward(x)
        return x
