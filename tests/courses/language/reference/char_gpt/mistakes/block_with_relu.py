"""The perceptron has ReLU in the place of GELU.

nn.GELU().
"""


class Block(Block):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.mlp[1] = nn.ReLU()
