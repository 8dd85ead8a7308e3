"""The returned weights are those after dropout, so that some are zero and the others too large.

Keep the softmax before anything is dropped.

Look for: dropout()
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = self.dropout((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
        y = self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, dim))
        return (y, weights) if return_weights else y
