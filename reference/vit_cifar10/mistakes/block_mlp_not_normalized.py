"""The MLP gets tokens that are not normalized."""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(x)
