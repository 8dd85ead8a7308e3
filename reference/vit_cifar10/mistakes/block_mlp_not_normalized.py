"""The MLP gets tokens that are not normalized.

Look for: mlp(x) | feed_forward(x), mlp() | feed_forward()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(x)
