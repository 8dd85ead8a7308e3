"""The MLP's result is added to the normalized tokens; it should be added to the tokens themselves.

x = x + mlp(norm(x)): the x in front of the sum is not normalized.

Look for: mlp() | feed_forward()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = self.norm2(x + self.attention(self.norm1(x)))
        return x + self.mlp(x)
