"""The attention gets tokens that are not normalized.

Look for: attention(x) | attn(x), attention() | attn()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(self.norm2(x))
