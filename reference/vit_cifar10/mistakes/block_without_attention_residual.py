"""The attention's result replaces the tokens; it should be added to them.

Look for: attention() | attn()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
