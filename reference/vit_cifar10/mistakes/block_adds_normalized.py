"""The attention's result is added to the normalized tokens; it should be added to the tokens themselves.

Look for: body
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        h = self.norm1(x)
        x = h + self.attention(h)
        return x + self.mlp(self.norm2(x))
