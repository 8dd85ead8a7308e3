"""All blocks share their parts: the same layers are applied again and again. Each block should have weights
of its own.

Construct the parts inside the loop over depth: what is made before it, or by [x] * depth, is one object.

Look for: _ * depth | repeat(), Attention() | FeedForward()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, 1, heads, dim_head, mlp_dim, dropout)
        self.blocks = nn.ModuleList([self.blocks[0]] * depth)
