"""The perceptron has no layer of 4 * dim features.

nn.Linear(dim, 4 * dim).
"""


class Block(Block):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
