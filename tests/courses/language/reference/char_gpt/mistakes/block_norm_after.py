"""The norms stand behind the residual connections.

Normalize what goes into attention and mlp.
"""


class Block(Block):
    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))
