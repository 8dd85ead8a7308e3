"""The parts are not wrapped in PreNorm: attention and feed-forward part read tokens that were never
normalized. A block computes x = x + Attention(norm(x)), then x = x + FeedForward(norm(x)).

Put PreNorm(dim, Attention(...)) and PreNorm(dim, FeedForward(...)) into every block.

Look for: Attention()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 0, heads, dim_head, mlp_dim, dropout)
        for _ in range(depth):
            attention = Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)
            self.blocks.append(nn.ModuleList([attention, FeedForward(dim, mlp_dim, dropout=dropout)]))
