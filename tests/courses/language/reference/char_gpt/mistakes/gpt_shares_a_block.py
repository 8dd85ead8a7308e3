"""One block is used again and again.

Make a block for each layer.
"""


class GPT(GPT):
    def __init__(self, vocabulary, block_size, dim, depth, heads):
        super().__init__(vocabulary, block_size, dim, depth, heads)
        self.blocks = nn.Sequential(*[Block(dim, heads)] * depth)
