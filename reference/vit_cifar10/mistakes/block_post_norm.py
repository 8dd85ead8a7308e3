"""The norms come after the sums; they should come first, on what goes into each sub-layer.

x + attention(norm(x)), not norm(x + attention(x)).

Look for: body
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))
