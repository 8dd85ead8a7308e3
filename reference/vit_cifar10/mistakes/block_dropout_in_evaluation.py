"""Dropout of the MLP acts in evaluation mode, too.

nn.Dropout knows the mode; {F = torch.nn.functional}.dropout has to be told by training=self.training.

Look for: F.dropout(), dropout()
"""


class EncoderBlock(EncoderBlock):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        dropped = F.dropout(self.mlp(self.norm2(x)), self.mlp[2].p)
        return x + dropped
