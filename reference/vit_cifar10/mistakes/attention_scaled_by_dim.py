"""The scores are divided by sqrt(dim); they should be divided by sqrt(dim / heads), the root of a head's
width.

Look for: _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * dim**-0.5).softmax(dim=-1)
        joined = (self.dropout(weights) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, weights) if return_weights else y
