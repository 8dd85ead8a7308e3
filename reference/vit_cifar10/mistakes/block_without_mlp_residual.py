"""The MLP's result replaces the tokens; it should be added to them.

Look for: mlp() | feed_forward()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return self.mlp(self.norm2(x))
