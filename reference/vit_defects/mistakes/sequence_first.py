"""The first axis is treated as the tokens and the second as the batch: the images of a batch look at each
other, the tokens of an image do not. The input is (batch, tokens, dim).

Look at each view, permute and transpose: which axis is which?

Look for: permute() | transpose()
"""


class Attention(Attention):
    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)
