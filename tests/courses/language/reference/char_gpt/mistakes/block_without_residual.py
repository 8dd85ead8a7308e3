"""The attention's output takes the place of its input.

x = x + self.attention(...).
"""


class Block(Block):
    def forward(self, x):
        x = self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
