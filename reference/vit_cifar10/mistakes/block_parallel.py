"""The MLP gets the block's input; it should get what the attention has added to.

Look for: mlp() | feed_forward()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        return x + self.attention(self.norm1(x)) + self.mlp(self.norm2(x))
