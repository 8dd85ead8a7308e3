"""Both parts of a block use the same normalization. Each should have a normalization of its own, with
weights of its own, because what they normalize differs.

Construct two: PreNorm(dim, Attention(...)) and PreNorm(dim, FeedForward(...)).

Look for: LayerNorm()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            norm = nn.LayerNorm(dim)
            attention = nn.Sequential(norm, Attention(dim, heads, dim_head, dropout))
            feed_forward = nn.Sequential(norm, FeedForward(dim, mlp_dim, dropout))
            self.blocks.append(nn.ModuleList([attention, feed_forward]))
