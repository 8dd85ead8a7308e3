"""The blocks, or parts of them, are in a plain Python list, so model.parameters() does not find them: the
optimizer never trains them, and model.to(device) leaves them behind.

Use nn.ModuleList in place of every list or tuple of modules, including the pair that is appended for each
block.

Look for: []
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, heads, dim_head, mlp_dim, dropout)
        blocks = [tuple(block) for block in self.blocks]
        del self.blocks
        self.blocks = blocks
